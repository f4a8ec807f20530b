"""Weights files in (without Keras); statistics, differences, channel significance and attention maps out.

Read ``weight_file``, ``layer_statistics`` and ``difference``. ``significance`` and ``significance_plot`` rate
output channels, ``attention`` draws attention weights, ``output_layer`` compares a model with a vocabulary.
"""
