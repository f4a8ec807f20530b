"""The demo's results in; example sentences and its summary page out.

Read ``examples``, then ``summary_page``.
"""
