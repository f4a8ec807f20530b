"""Raw Chinese text, transcripts and dictionaries in; clean clauses and pairs of pinyin and hanzi out.

Read ``sources``, ``clauses``, ``verbalisation`` (figures to words), ``deduplication`` and ``cleaning`` (text
to clean text); then ``pinyin_pairs`` (pairs from manifests and texts) and the ``pinyin_pair_*`` files (pairs
on disk: pieces, parts, shards, rows for training).
"""
