"""The run folder: what a training run writes, and what testing, transcription and export read.

Read ``run`` (paths, config, opening, creating and locking a run), ``checksums`` and ``checksum_files`` (a
changed file is detected before it is used), ``environment`` (machine and versions of a training),
``temporary`` (names of unfinished files) and ``file_lock`` (others wait). ``bundle_files`` reads the settings
and files of an exported model.
"""
