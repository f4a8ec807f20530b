"""The run folder: what a training run writes, and what testing, transcription and export read.

Read ``run`` (paths, config, opening, creating and locking a run), ``checksums`` and ``checksum_files`` (a
changed file is detected before it is used), ``environment`` (machine and versions of a training) and
``temporary`` (names of unfinished files). ``bundle_files`` reads the settings and files of an exported model.
"""
