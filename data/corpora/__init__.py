"""Speech corpora as they are distributed in; checked manifests of train, dev and test out.

One corpus a file, each with the command ``python -m data.corpora.NAME prepare ROOT`` (and ``download`` where
the corpus is public); what they share is in ``tools``. Read ``thchs30`` as the example, ``kaldi`` and
``manifest_lists`` for data that is already listed, ``synthetic`` for speech that is made here.
"""
