"""Recognises the audio of clients while they speak: partial results and segments, without batches.

Read ``messages`` (the protocol of ``/v1/stream``), ``worker`` (a process that follows several streams),
``workers`` (these processes, and a stream's connection to one), ``opus`` (compressed sound, decoded in a
process for each stream) and ``file_stream`` (a whole file instead). The path is ``serving.endpoints.stream``.
"""
