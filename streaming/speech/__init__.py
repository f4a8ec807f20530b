"""Samples in; drafts of an utterance while it is spoken, and its segments when it ends, out.

Read ``stream`` (samples to logits; ``keras_stream`` for a Keras model), ``utterances`` (logits to drafts and
segments) and ``recognizer`` (recordings to segments, with this or any other live stream).
"""
