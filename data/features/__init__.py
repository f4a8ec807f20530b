"""Utterances in; their features from a cache on disk, augmented for training, out.

Read ``keys`` (what a cache entry depends on), ``shards`` (the file format), ``cache`` (computed once, in
parallel) and ``augment`` (speed, noise, room and masking).
"""
