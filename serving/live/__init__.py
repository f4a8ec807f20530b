"""Recognises the audio of clients while they speak: partial results and segments, without batches.

Read ``messages`` (the protocol of ``/v1/stream``), ``worker`` (a process that follows several streams),
``workers`` (these processes, and a stream's connection to one), ``opus`` and ``opus_decoding`` (compressed
sound, decoded in a process for each stream). The path itself is ``serving.endpoints.stream``.
"""
