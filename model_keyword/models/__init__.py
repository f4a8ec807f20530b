"""Keyword networks, one paper per file: each builds, from its config, the layers from features to logits.

``dnn`` and ``cnn`` are the shortest; ``ds_tc_resnet`` and ``bc_resnet`` are the usual choice on a device.
"""
