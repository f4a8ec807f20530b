"""Acoustic models, which compute CTC logits over tonal syllables from features; CTC loss and decoding.

Read ``registry`` (models by name), ``models/compact``, ``ctc/loss`` and ``ctc/prefix_beam``, then
``acoustic_model`` (loads a run folder for recognition). ``causal`` loads a model for streams. A packed run
has its network in ONNX (``packed_run``): ``onnx_acoustic`` runs it without Keras, ``packed_weights`` reads
its weights. ``vocabulary_transfer`` moves weights to other tokens, ``legacy_import`` reads published weights.
"""
