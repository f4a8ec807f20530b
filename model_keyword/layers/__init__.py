"""Keras layers and settings that keyword models share.

Read ``time_layers`` (layers over frames) and ``front_end`` (features inside the model); ``layer_settings``
checks settings.
"""
