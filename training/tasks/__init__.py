"""Defines the training tasks, one per file: config, batches, model, losses and metrics for the loop.

Read ``speech``, ``language`` and ``keyword`` (with ``keyword_batches``); ``text_rows/`` and ``combined``
train the parts of the shipped converter and its language model.
"""
