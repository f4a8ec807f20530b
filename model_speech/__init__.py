"""Acoustic models: features in, CTC logits over tonal syllables out, and what reads those logits.

Read ``registry`` (models by name), one file of ``models``, ``ctc/loss`` and ``ctc/prefix_beam``, then
``acoustic_model`` (a run folder ready to recognise). ``causal`` makes a model a stream can run,
``vocabulary_transfer`` changes its tokens, ``legacy_import`` reads published weights.
"""
