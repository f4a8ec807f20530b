"""Computes the features of utterances once, with augmented copies for training, and caches them on disk.

Read ``augment`` (augmented copies of recordings) and ``waveform_effects`` (noise, rooms), then ``shards``
(the file format), ``cache`` (computed once, in parallel) and ``spec_augment`` (masks in each epoch).
"""
