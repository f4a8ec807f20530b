"""Recognises recordings and live audio: segments with syllables, times and hanzi.

Testing, transcription and serving share it. Read ``recognizer`` (acoustic model, decoder and converter
together), ``pieces``, ``voice_activity`` and ``endpoints`` (recordings cut at pauses), then ``options`` and
``loading`` (a recognizer from a command line), ``confidence`` and ``calibrate`` (how certain a syllable is),
``no_speech`` (whether a segment is speech), ``phrases`` (only the phrases of a list), ``two_pass_stream`` and
``partial_results`` (live audio), ``evaluation`` (the results of a whole test set) and ``cluster_jobs``
(recordings recognised by the nodes of a cluster).
"""
