"""An artefact's file in; an object that takes clips or chunks and gives logits, out.

Read ``artefacts``, then one of ``litert``, ``onnx`` and ``tensorflow``; each imports its own runtime alone.
"""
