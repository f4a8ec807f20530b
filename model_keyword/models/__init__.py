"""Keyword networks, one paper per file: a config in, a ``keras.Model`` from features to logits out.

``dnn`` and ``cnn`` are the shortest; ``ds_tc_resnet`` and ``bc_resnet`` are the usual choice on a device.
"""
