"""A text file of phrases and logits in; the phrase that was said with its slots, or a refusal, out.

Read ``grammar`` (the file as syntax trees), ``expansion`` (all phrases that they allow), ``pronunciation``
(the syllable sequences of a phrase), ``phrase_list`` (these together), ``search`` (the phrases that fit the
logits best), ``confidence`` (how certain the best one is) and ``segments`` (utterances between pauses). The
search through the frames is ``model_speech/ctc/prefix_tree``.
"""
