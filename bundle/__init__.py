"""Exports a trained run as a bundle: SavedModel, LiteRT and ONNX files, each compared with the source model.

Read ``variants`` (formats, modes and precisions), ``folder`` (the files of a bundle),
``export`` (writes the files), ``runtimes`` (run an exported model) and ``check``
(compares it with the source model); ``report`` writes the table. ``pack`` makes the small folder of a
speech run that recognises without TensorFlow.
"""
