"""Keyword networks whose layers follow each other, from feature frames (B, T, F) to logits (B, L).

Read ``dnn``, dense layers, and ``cnn``, which are the shortest. ``ds_cnn`` convolves over time and frequency
too, ``inception`` and ``mobilenet`` over time; ``svdf`` has filters over features and over time.
"""
