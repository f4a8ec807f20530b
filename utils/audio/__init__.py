"""Reads audio files, folders, pipes and the microphone as mono float32 samples at the requested sample rate.

Read ``reading`` first (files to samples), then ``decoding`` (libsndfile or FFmpeg). ``folders`` lists
recordings; ``live`` (standard input or the ``microphone``) reads while sound arrives. ``levels`` measures how
loud samples are and whether they are clipped, ``padding`` adds silence beside speech at the edges of a
recording.
"""
