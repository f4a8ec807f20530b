"""Recognises speech while it is spoken: drafts of an utterance, and its segments when it ends.

A draft is a hypothesis that may still grow. Read ``stream`` (samples to logits; ``keras_stream`` for a Keras
model), ``utterances`` (logits to drafts and segments) and ``recognizer`` (recordings to segments, with this
or any other live stream).
"""
