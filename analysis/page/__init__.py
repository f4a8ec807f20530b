"""Writes results as self-contained HTML pages with charts, audio and spectrograms.

Read ``rendering`` (shared by all pages, as is ``data_urls``) and ``report`` (the error
report), then its parts ``charts``, ``texts`` and ``utterance_rows``. ``evidence``,
``collect_evidence`` and ``posterior_picture`` show single recordings. The templates are in ``templates``.
"""
