"""Run folders in; what was trained, how far it came and how well it does, as tables and curves, out.

Read ``summaries``, ``run_table`` and ``text_table``; ``history`` and ``curves`` draw a training.
"""
