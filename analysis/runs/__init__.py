"""Summarises run folders: their state, settings and error rates, as a table.

Read ``summaries`` (what is read from one run) and ``run_table`` (the table of several runs); ``history``
reads the metrics of each epoch.
"""
