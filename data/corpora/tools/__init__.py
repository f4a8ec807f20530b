"""Candidates found by a corpus's loader → manifests, ``rejected.tsv`` and a summary; the code of all corpora.

Read ``preparation`` first, then ``transcripts`` and ``command``; ``summary`` computes and prints statistics.
``download``, ``archives``, ``splits`` and ``kaldi_segments`` serve some corpora only.
"""
