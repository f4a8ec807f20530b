"""Outputs of keyword models in; accuracy, misses and false alarms, as tables and pages, out.

Read ``scores`` and ``report`` (clips), then ``detections`` and ``detection_report`` (long recordings);
``wake_word_report`` writes the report of a new wake word.
"""
