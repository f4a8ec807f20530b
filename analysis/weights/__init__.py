"""Analyses weights files without Keras: statistics, channel significance, attention maps.

Read ``weight_file`` and ``layer_statistics``. ``significance`` rates output channels,
``attention`` shows attention weights.
"""
