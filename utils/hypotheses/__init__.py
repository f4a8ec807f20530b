"""The results of recognition that all packages exchange, and transcript files.

Read ``recognition`` (the results of all stages), ``whole_recordings`` (joins segments), ``phrases`` (the
comparison with a list of phrases), ``inspection`` (the output of an acoustic model),
``calibration`` (fits probabilities that a result is right, and measures them),
``transcript_formats`` (text, JSON, SRT, VTT, TextGrid, CTM), ``digits`` (numbers as digits),
``transcript_jobs`` and ``transcript_marks`` (the files, and what has been finished before) and ``live`` (the
transcript of live audio while it is recognised).
"""
