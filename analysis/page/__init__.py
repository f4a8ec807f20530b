"""Writes results as self-contained HTML pages with charts, audio and spectrograms.

Read ``rendering`` (shared by all pages) and ``report`` (the error report), then its part
``charts``. ``collect_evidence`` and ``posterior_picture`` show single recordings. The
templates are in ``templates``.
"""
