"""Answers of keyword models in; accuracy, misses and false alarms, as tables and pages, out.

Read ``scores`` and ``report`` (clips), then ``detections`` and ``detection_report`` (long recordings);
``wake_word_report`` is what the user of a wake word reads.
"""
