"""Acoustic models: features in, CTC logits over tonal syllables out; CTC loss and decoding.

Read ``registry`` (models by name), ``models/compact``, ``ctc/loss`` and ``ctc/prefix_beam``, then
``acoustic_model`` (loads a run folder for recognition). ``causal`` loads a model for streams,
``vocabulary_transfer`` moves its weights to other tokens, ``legacy_import`` reads published weights.
"""
