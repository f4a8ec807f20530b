"""Results of a test: hypotheses of one or several systems in; one structure of all figures out.

Read ``utterance_results`` (what a test gives for one utterance), ``results`` (the structure), ``collect``
(fills it), ``breakdowns`` (by speaker, length, noise …) and ``scores``; ``files``, ``terminal`` and
``test_tables`` write it as JSON, CSV and tables.
"""
