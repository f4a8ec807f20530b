"""Counts in; confidence intervals, and whether one system is better than another, out.

Read ``exact_intervals`` (shares and rates), ``bootstrap`` (error rates by speaker or sentence) and
``comparison`` (two systems on the same utterances).
"""
