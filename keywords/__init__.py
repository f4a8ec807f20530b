"""Use of keyword models: wake words, listening, thresholds, and the evaluation of keyword runs.

In: bundles, runs and recordings. Out: detections, a calibrated threshold, figures. Read ``listening``, then
``evaluation`` (clips) and ``long_recordings`` (misses and false alarms); ``wake_word`` with
``wake_word_request``, ``backgrounds`` and ``calibration`` makes a model from a typed word.
"""
