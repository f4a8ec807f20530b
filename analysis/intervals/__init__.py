"""Counts in; confidence intervals, and the comparison of two systems, out.

Read ``exact_intervals`` (proportions and event rates), ``bootstrap`` (error rates, resampled by speaker or
sentence) and ``comparison`` (two systems on the same utterances).
"""
