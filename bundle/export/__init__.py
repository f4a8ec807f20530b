"""A trained run in; the files of a bundle, in every requested format, mode and precision, out.

Read ``source`` with ``keyword_source``, ``speech_source`` and ``language_source`` (model and clips),
``build`` (the whole bundle) and ``artefact_writer`` (one artefact). ``stages`` writes SavedModels;
``litert_files``, ``onnx_files`` and ``frozen_graphs`` write the other formats; ``quantisation`` and
``float_layers`` choose the layers that int8 leaves in float; ``drawing`` draws the model.
"""
