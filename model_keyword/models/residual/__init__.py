"""Keyword networks with residual connections, from feature frames (B, T, F) to logits (B, L).

Read ``resnet``, which convolves over time and frequency, then ``tc_resnet``, which convolves over time.
``bc_resnet`` and ``ds_tc_resnet`` have separable convolutions; ``svdf_resnet`` has SVDF layers. The
others are networks for images, reduced in size.
"""
