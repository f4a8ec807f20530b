"""Manifests, recipes, run folders and the machine in; findings that would spoil a training, out.

Read ``findings`` and ``listings``, ``examine`` (which checks look at what) and one file of ``checks``;
``recipes`` checks a config against its data, ``overfit`` tries ten utterances, ``machine`` measures a step
and forecasts.
"""
