"""Opens exported model files (artefacts) and runs them: clips or chunks to logits.

Read ``artefacts``, then one of ``litert``, ``onnx`` and ``tensorflow``; each imports its own runtime alone.
"""
