"""Audio files, folders of them and pipes in; mono float32 samples at the asked sample rate out.

Read ``formats`` (which files can be read), ``reading`` (files to samples) and ``piped`` (standard input).
"""
