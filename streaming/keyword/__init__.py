"""Detects keywords in endless audio: samples in, keywords with time and score out.

Read ``stream`` (samples to probabilities), then ``detection`` (smoothing, threshold, refractory time).
"""
