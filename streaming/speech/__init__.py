"""Samples in; syllables as soon as they are recognised, and utterances when they end, out.

Read ``stream`` (samples to logits), ``utterances`` (logits to syllables and utterances) and ``recognizer``
(recordings to segments with hanzi).
"""
