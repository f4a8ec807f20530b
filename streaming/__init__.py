"""A trained Keras model in; the same model for streams, which takes chunks and keeps its state, out.

Read ``conversion`` (for any model), ``chunks`` (samples to chunks), then ``keyword`` and ``speech`` (from the
outputs of a stream to keywords and syllables).
"""
