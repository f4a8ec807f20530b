"""Summarises run folders: their state, settings and error rates, as a table.

Read ``summaries`` (what is read from one run), then ``run_table`` (the table of several runs).
"""
