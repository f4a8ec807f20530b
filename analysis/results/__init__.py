"""Collects all results of one or several systems in one structure, and writes its views.

Read ``results`` (the structure), ``rates`` (what is counted) and ``collect`` (fills it, with ``breakdowns``
by speaker, length, noise …). ``result_files`` writes it as JSON and CSV, ``terminal`` as text and
``analysis.page`` as HTML.
"""
