"""Keyword networks, one paper per file, from feature frames (B, T, F) to logits (B, L).

Layers follow each other in ``dnn`` and ``cnn``, which are the shortest, ``ds_cnn``, ``inception``,
``mobilenet`` and ``svdf``. ``resnet``, ``tc_resnet``, ``ds_tc_resnet``, ``bc_resnet``, ``svdf_resnet``,
``xception``, ``mobilenet_v2`` and ``inception_resnet`` have residual connections, ``gru_lstm``, ``crnn`` and
``att_rnn`` a state. ``ds_tc_resnet`` and ``bc_resnet`` are the usual choice on a device.
"""
