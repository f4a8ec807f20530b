"""Chunks of samples in; syllables as they are recognised and utterances as they end, out.

Read ``stream`` (samples to logits), ``utterances`` (where one ends) and ``recognizer`` (segments with hanzi).
"""
