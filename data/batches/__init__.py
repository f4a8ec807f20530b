"""Forms padded batches of cached features and labels, in an order that the seed and the epoch determine.

Read ``mixture`` (which utterances an epoch reads), then ``batching`` (how they form batches) and
``packed_source`` (batches of corpora that are too large for the memory).
"""
