"""Checks manifests, recipes and run folders for problems that would spoil a training run.

Read ``findings`` and ``listings``, ``examine`` (which checks run on what) and one file of ``checks``;
``recipes`` checks a config against its data, ``overfit`` trains on ten utterances.
"""
