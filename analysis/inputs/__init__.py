"""Reads references and hypotheses from files of many formats, as results of single utterances.

Read ``utterance_results`` (what all of the analysis reads), ``text_files`` (references and hypotheses) with
``transcript_files`` (subtitles, CTM, TRN) and ``records`` (tables, JSON), ``hypothesis_files``, which matches
them, and ``normalisation``. ``training_texts`` reads the lists that a model was trained on, and ``sound``
estimates noise and pitch.
"""
