"""The demo's results in; example sentences, learning curves and its summary page out.

Read ``examples`` and ``curves``, then ``summary_page``.
"""
