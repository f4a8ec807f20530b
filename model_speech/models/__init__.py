"""The acoustic models, one per file: a config in, a ``keras.Model`` from features and lengths to logits out.

Read ``compact`` first, then ``compact_streaming``, which is made of the same blocks. ``dfcnn``, ``dfsmn``,
``gru_ctc`` and ``conformer`` are published architectures.
"""
