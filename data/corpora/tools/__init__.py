"""Code that all corpora share: checks the utterances that a corpus's module finds, and writes manifests.

Read ``preparation`` first, then ``transcripts`` and ``command``. ``download``, ``archives``, ``lists``,
``kaldi_segments`` and ``reading_aloud`` serve some corpora only.
"""
