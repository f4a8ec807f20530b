"""Acoustic models, which compute CTC logits over tonal syllables from features; CTC loss and decoding.

Read ``registry`` (models by name), ``models/compact``, ``ctc/loss`` and ``ctc/prefix_beam``, then
``acoustic_model`` (loads a run folder for recognition). ``causal`` loads a model for streams. ``pack`` and
``int8_weights`` write a run with one byte per weight, which ``compact_numpy`` and ``compact_streaming_numpy``
run without Keras. ``vocabulary_transfer`` moves weights to other tokens, ``legacy_import`` reads published
weights.
"""
