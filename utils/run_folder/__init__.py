"""The run folder: what a training run writes, and what testing, transcription and export read.

Read ``run`` (paths, config, opening and creating a run), ``checksums`` and ``checksum_files`` (a changed file
is detected before it is used), ``environment`` (machine and versions of a training), ``temporary`` (names of
unfinished files), ``lock`` (one training at a time) and ``file_lock`` (others wait). ``bundle_files`` reads
the settings and files of an exported model.
"""
