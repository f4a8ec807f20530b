"""Recognises only the phrases that a text file allows: the phrase with its slots, or a refusal.

Read ``grammar`` (the file as syntax trees), ``expansion`` (all phrases that they allow), ``pronunciation``
(the syllable sequences of a phrase), ``phrase_list`` (these together), ``search`` (the phrases that fit the
logits best), ``confidence`` (how certain the best one is) and ``segments`` (utterances between pauses). The
search through the frames is ``model_speech/ctc/best_sequences``.
"""
