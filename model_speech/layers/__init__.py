"""Keras layers that several acoustic models share: masking, normalisation, attention, precision.

Read ``masking`` first: padding must not influence any output.
"""
