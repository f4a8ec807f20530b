"""Samples in, frames of features out: for acoustic models, for keyword models, whole or as a stream.

Read ``speech`` (spectrogram, log mel, MFCC), then ``stream`` and ``running_normalisation`` (the same, chunk
by chunk), then ``keyword`` (features of keyword models) with ``micro`` and ``fixed_point_fft`` (integer
features of microcontrollers).
"""
