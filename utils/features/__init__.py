"""Computes the features of acoustic models and keyword models from samples, of whole recordings or streams.

Read ``settings``, ``speech`` (the features of a kind: ``whisper`` or ``log_spectra``) with ``spectra``,
``stream`` and ``running_normalisation`` (the same for streams), then ``keyword`` (features of keyword models)
with ``micro`` (features of microcontrollers).
"""
