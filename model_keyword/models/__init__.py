"""Keyword networks, one paper per file: each builds, from its config, the layers from features to logits.

Read ``feed_forward``, networks whose layers follow each other, then ``residual``, with connections around
layers, and ``recurrent``, with a state. ``residual/ds_tc_resnet`` and ``residual/bc_resnet`` are the usual
choice on a device.
"""
