"""Keyword models: a clip of audio features in, logits of a few labels out.

Read ``labels``, ``registry`` (models by name) and one file of ``models``, e.g. ``models/ds_tc_resnet``; then
``layers`` and ``loading`` (a run folder ready to use).
"""
