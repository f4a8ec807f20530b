"""Analyses weights files without Keras: statistics, channel significance, attention maps.

Read ``weight_file`` and ``layer_statistics``. ``significance`` and ``significance_plot`` rate
output channels, ``attention`` shows attention weights.
"""
