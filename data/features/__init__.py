"""Computes the features of utterances once, with altered copies for training, and caches them on disk.

Read ``augment`` (altered copies of recordings) and ``waveform_effects`` (noise, rooms), then ``keys`` (what a
cache entry depends on), ``shards`` (the file format), ``cache`` (computed once, in parallel) and
``spec_augment`` (masks in each epoch).
"""
