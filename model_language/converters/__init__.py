"""Converters: language models with a search, which convert syllables to hanzi; all have one interface.

Read ``base``, then ``ngram``, ``neural`` and ``gated`` (networks alone) and ``combined`` (the shipped one:
network, n-grams and words). ``noisy_channel`` lets a recognised syllable stand for others; ``explain`` adds
user words, confidences, alternatives and reasons.
"""
