"""Computes the features of acoustic models and keyword models from samples, of whole recordings or streams.

Read ``speech`` (spectrogram, log mel, MFCC) and ``power_spectrum``, then ``stream`` and
``running_normalisation`` (the same for streams), then ``keyword_config`` and ``keyword`` (features of keyword
models) with ``micro`` (features of microcontrollers).
"""
