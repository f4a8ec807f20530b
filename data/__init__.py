"""Corpora and texts in; manifests, cached features, batches and pairs of pinyin and hanzi out.

Read ``manifest`` (the one form of a corpus), ``vocabularies`` and ``evaluation_lists``, then the folders in
the order of the flow: ``corpora`` and ``synthesis`` make manifests, ``features`` and ``batches`` feed
acoustic models, ``text`` feeds language models, ``keywords`` feeds keyword models. No module here knows a
model.
"""
