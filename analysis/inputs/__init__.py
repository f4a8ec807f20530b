"""Reads references and hypotheses from files of many formats, as results of single utterances.

Read ``utterance_results`` (what all of the analysis reads), ``text_files`` (references and hypotheses) with
``transcript_files`` (subtitles, CTM, TRN) and ``records`` (tables, JSON), ``utterance_ids``, which matches
them, ``hypothesis_files`` and ``normalisation``. ``training_texts`` reads the lists that a model was trained
on, and ``noise`` estimates the signal-to-noise ratio.
"""
