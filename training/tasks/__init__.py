"""One task per file: a config in; batches, a model, losses and metrics for the training loop out.

Read ``speech``, ``language`` and ``keyword`` (with ``keyword_batches``); ``gated`` with ``gated_rows`` and
``combined`` train the shipped converter, ``training_texts`` notices a changed text.
"""
