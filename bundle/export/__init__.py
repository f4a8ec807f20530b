"""A trained run in; the files of a bundle out, in every format and precision asked for.

Read ``source`` with ``keyword_source``, ``speech_source`` and ``language_source`` (what is exported),
``build`` (the whole bundle) and ``workshop`` (one artefact); ``stages``, ``litert_files``, ``onnx_files`` and
``frozen_graphs`` write the formats, ``quantisation`` chooses layers for int8, ``drawing`` draws the model.
"""
