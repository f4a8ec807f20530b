"""A trained Keras model in; the same model as a stream that takes chunks and keeps its state, out.

Read ``conversion`` (any model), then ``keyword`` and ``speech`` (what is done with a stream's answers).
"""
