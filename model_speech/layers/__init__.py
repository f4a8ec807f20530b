"""Keras layers that several acoustic models share: masking, normalisation, relative attention.

Read ``masking`` first: padding must not influence any output.
"""
