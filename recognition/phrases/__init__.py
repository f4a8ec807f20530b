"""Recognises only the phrases that a text file allows: the phrase with its slots, or a rejection.

Read ``grammar`` (the file as syntax trees), ``expansion`` (all phrases that they allow), ``pronunciation``
(the syllable sequences of a phrase), ``phrase_list`` (these together), ``search`` (the phrases that fit the
logits best), ``confidence`` (how certain the best one is), ``segments`` (utterances between pauses) and
``spotter`` (phrases in an endless stream). The search goes through ``model_speech/ctc/best_sequences``.
"""
