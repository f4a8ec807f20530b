"""Uses keyword models: makes wake words, listens, chooses thresholds, evaluates keyword runs.

Read ``listening``, then ``evaluation`` (clips) and ``recording_results`` (misses and false alarms);
``wake_word`` with ``wake_word_training``, ``backgrounds`` and ``calibration`` makes a model of a typed word.
"""
