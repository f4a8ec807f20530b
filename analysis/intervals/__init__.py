"""Confidence intervals of rates, and the statistical comparison of two systems.

Read ``bootstrap`` (error rates, resampled by speaker or sentence) and ``comparison`` (two systems on the same
utterances).
"""
