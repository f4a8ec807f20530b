"""Cached features and encoded labels in; padded batches in a reproducible order out.

Read ``mixture`` (which utterances an epoch reads), then ``batching`` (how they form batches).
"""
