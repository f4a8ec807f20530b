"""Converters: language models with a search, which convert syllables to hanzi; all have one interface.

Read ``base``, then ``ngram``, ``neural`` and ``gated_cnn`` (networks alone) and ``combined`` (the shipped
one: network, n-grams and words). ``noisy_channel`` lets a recognised syllable stand for others.
``user_word_converter`` adds user words and alternatives: ``found_paths`` searches for them, ``explanation``
has their confidences and reasons.
"""
