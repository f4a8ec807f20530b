"""Converts a trained Keras model into a stream, which takes a recording in chunks and keeps its state.

Read ``conversion`` (for any model), ``chunks`` (samples to chunks), then ``keyword`` and ``speech`` (from the
outputs of a stream to keywords and to syllables).
"""
