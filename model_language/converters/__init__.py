"""Converters: syllables in, hanzi out, all behind the interface of ``base``.

Read ``base``, then ``ngram``, ``gated`` (a network alone) and ``combined`` (the shipped one: network, n-grams
and words); ``noisy_channel`` lets a recognised syllable stand for others, ``explain`` gives confidences and
alternatives, ``scoring`` the log-probability of given hanzi.
"""
