"""Audio files, folders and pipes in; mono float32 samples at the requested sample rate out.

Read ``formats`` (which files can be read), ``reading`` (files to samples) and ``piped`` (standard input).
"""
