"""Recognises speech while it is spoken: partial results of an utterance, and its segments when it ends.

A partial result is a hypothesis that may still grow. Read ``stream`` (samples to logits; ``keras_stream`` for
a Keras model), ``utterances`` (logits to partial results and segments) and ``recognizer`` (recordings to
segments, with this or any other live stream).
"""
