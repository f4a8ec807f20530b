"""The acoustic models, one per file: each builds, from its config, a ``keras.Model`` that computes CTC logits.

Read ``compact`` first, then ``compact_streaming``, which is made of the same blocks. ``dfcnn``, ``dfsmn``,
``gru_ctc`` and ``conformer`` are published architectures.
"""
