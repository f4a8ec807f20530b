"""Defines the training tasks, one per file: config, batches, model, losses and metrics for the loop.

Read ``speech``, ``language`` and ``keyword`` (with ``keyword_batches``); ``gated`` with ``gated_rows`` and
``combined`` train the shipped converter, ``training_texts`` notices a changed text.
"""
