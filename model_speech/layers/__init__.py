"""Keras layers that acoustic models share: masking, normalisation, relative attention, mixed precision.

Read ``masking`` first: padding must not influence any output.
"""
