"""Builds the demo's summary page: example sentences and learning curves from its results, then one HTML page.

Read ``examples`` and ``curves``, then ``summary_page``.
"""
