"""Prepares the data of all models: corpora become manifests, features and batches; texts become pinyin pairs.

Read ``manifest`` (the format of all corpora), ``vocabularies`` and ``evaluation_lists``, then the folders in
the order of the data flow: ``corpora`` and ``synthesis`` write manifests, ``features`` and ``batches`` feed
acoustic models, ``text`` feeds language models, ``keywords`` feeds keyword models. ``array_store`` has the
rules of all caches. No module here imports a model.
"""
