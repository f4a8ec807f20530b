"""The acoustic models, one per file: each builds a ``keras.Model`` that computes CTC logits from features.

Read ``compact`` first, then ``compact_streaming``, which is made of the same blocks. ``dfcnn``, ``dfsmn``,
``gru_ctc`` and ``conformer`` are published architectures.
"""
