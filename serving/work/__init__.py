"""Uploads and texts in; segments and conversions out, computed by processes that may die without harm.

Read ``fair_queue`` (which piece of which request is next), ``child`` (a process with a pipe), ``uploads`` (a
file to pieces, in a process for each upload), ``models`` (what a worker computes) and ``workers`` (the
processes that hold the models).
"""
