"""Keyword models: small networks that compute logits of a few labels from a clip of audio features.

Read ``labels``, ``registry`` (models by name) and one file of ``models``, e.g.
``models/ds_tc_resnet``; then ``layers`` and ``loading`` (loads the model of a run folder).
"""
