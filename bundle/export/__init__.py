"""Writes the files of a bundle from a trained run, in every requested format, mode and precision.

Read ``source`` with ``keyword_source``, ``speech_source`` and ``language_source`` (model and clips),
``build`` (the whole bundle) and ``artefact_writer`` (one artefact). ``stages`` writes SavedModels and frozen
graphs, ``litert_files`` and ``onnx_files`` the other formats; ``quantisation`` finds the layers that int8 may
leave in float; ``drawing`` draws the model. ``packed_network`` makes the small file of a packed speech run.
"""
