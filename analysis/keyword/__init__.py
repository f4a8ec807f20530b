"""Analyses keyword models: accuracy on clips, misses and false alarms in recordings, as tables and pages.

Read ``clip_report`` (clips), then ``detections`` (long recordings);
``wake_word_report`` writes the report of a new wake word.
"""
