"""Analyses weights files without Keras: statistics, channel significance, attention maps.

Read ``weight_file`` (``packed_weights`` for packed models) and ``layer_statistics``.
``significance`` and ``significance_plot`` rate output channels, ``attention`` draws attention weights,
``output_layer`` compares a model with a vocabulary.
"""
