"""The run folder: what a training leaves and all that testing, transcription and export need.

Read ``run`` (names of the parts, config, metrics), ``checksums`` and ``checksum_files`` (a damaged part is
named before it is used) and ``lock`` (one training at a time).
"""
