"""Corpora and texts → manifests, cached features, batches, and pairs of pinyin and hanzi.

Read ``manifest`` (the form of all corpora), ``vocabularies`` and ``evaluation_lists``, then the folders in
the order of the flow: ``corpora`` and ``synthesis`` write manifests, ``features`` and ``batches`` feed
acoustic models, ``text`` feeds language models, ``keywords`` feeds keyword models. No module here imports a
model.
"""
