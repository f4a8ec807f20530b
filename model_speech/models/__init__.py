"""The acoustic models, one a file: a config in, a ``keras.Model`` from features and lengths to logits out.

``compact`` is the one to read first, ``compact_streaming`` its streaming twin; ``dfcnn``, ``dfsmn``,
``gru_ctc`` and ``conformer`` are published architectures.
"""
