"""Code that all corpora share: checks the utterances that a corpus's module finds, and writes manifests.

Read ``preparation`` first, then ``transcripts`` and ``command``. ``download``, ``archives``, ``splits``,
``kaldi_segments``, ``recording_checks`` and ``sentence_choice`` serve some corpora only.
"""
