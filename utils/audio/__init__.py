"""Reads audio files, folders, pipes and the microphone as mono float32 samples at the requested sample rate.

Read ``reading`` first (files to samples), then ``formats`` (which files can be read), ``containers`` (m4a,
mp4, webm), ``missing_lengths`` (headers that do not state the length) and ``frame_headers`` (of MP3 and
AAC), ``piped`` (standard input), ``microphone`` and ``live`` (one of these two), ``incomplete`` (the errors
of files that are cut off or empty), ``levels`` (how loud samples are, whether they are clipped) and
``padding`` (silence beside speech at the edges of a recording).
"""
