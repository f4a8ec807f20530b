"""What all corpora share: the command line, downloads, archives, transcripts, splits, checks, figures.

In: candidates as a corpus's loader finds them. Out: manifests, ``rejected.tsv`` and a summary. Read
``preparation`` first, then ``transcripts`` and ``command``; ``download``, ``archives``, ``splits`` and
``kaldi_segments`` serve single kinds of corpora.
"""
