"""A trained run in; a bundle of SavedModel, LiteRT and ONNX files, each compared with the source, out.

Read ``variants`` (what can be asked for), ``folder`` (what a bundle holds), ``export`` (how it is made),
``runtimes`` (how an artefact is run) and ``check`` (how it is proven); ``report`` writes the table,
``decoding`` changes a bundle's decoding parameters.
"""
