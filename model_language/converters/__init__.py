"""Converters: language models with a search, which convert syllables to hanzi; all have one interface.

Read ``base``, then ``ngram``, ``neural`` (networks alone) and ``combined`` (the shipped one: a gated CNN,
n-grams and words; also the gated CNN alone). ``noisy_channel`` lets a recognised syllable stand for others.
``user_word_converter`` adds user words and alternatives, ``explanation`` their confidences and reasons.
"""
