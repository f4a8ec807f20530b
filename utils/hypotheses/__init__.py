"""What recognition gives and the rooms above exchange: segments, alternatives, transcript files.

Read ``recognition`` (segments with syllables, times and hanzi), ``confusion_network`` (alternatives with
posteriors), ``transcript_formats`` (text, SRT, TextGrid, JSON …) and ``transcript_marks`` (which recording a
transcript belongs to).
"""
