"""The results of recognition that all packages exchange: segments, confusion networks, transcript files.

Read ``recognition`` (segments with syllables, times and hanzi), ``confusion_network`` (alternatives with
posteriors), ``calibration`` (fits probabilities that a result is right, and measures them),
``transcript_formats`` (text, JSON, SRT, VTT, TextGrid, CTM), ``digits`` (numbers as digits),
``transcript_marks`` (the recording and settings of each finished transcript) and ``live`` (the
transcript of live audio while it is recognised).
"""
