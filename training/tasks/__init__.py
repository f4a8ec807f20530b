"""Defines the training tasks, one per file: config, batches, model, losses and metrics for the loop.

Read ``speech``, ``language`` and ``keyword`` (with ``keyword_batches``). ``candidate_network`` and
``causal_cnn`` train networks on a long text that is cut into rows (``text_rows``), for the shipped
converter and its second pass; ``counted`` makes the models without epochs: n-grams, and the converter itself.
"""
