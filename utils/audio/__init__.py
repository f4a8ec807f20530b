"""Reads audio files, folders, pipes and the microphone as mono float32 samples at the requested sample rate.

Read ``reading`` first (files to samples), then ``decoding`` (which decoder reads a file, joined files),
``containers`` (FFmpeg) and ``problems`` (errors and notes). ``properties`` tells length, rate and channels of
a recording, ``samples`` checks samples of a caller and writes them. ``folders`` lists recordings; ``piped``
(standard input) and ``microphone`` read while sound arrives. ``levels`` measures how loud samples are and
whether they are clipped, ``padding`` adds silence beside speech at the edges of a recording.
"""
