"""Weights files in (no Keras needed); statistics, differences, significance and attention out.

Read ``weight_file``, ``layer_statistics`` and ``difference``; ``significance`` and ``significance_plot`` rate
channels, ``attention`` draws what a transformer looks at, ``output_layer`` says whether a vocabulary fits.
"""
