"""Analyses weights files without Keras: statistics, differences, channel significance, attention maps.

Read ``weight_file`` (``packed_weights`` for packed models), ``layer_statistics`` and ``difference``.
``significance`` and ``significance_plot`` rate output channels, ``attention`` draws attention weights,
``output_layer`` compares a model with a vocabulary.
"""
