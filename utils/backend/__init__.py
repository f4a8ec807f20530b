"""Keras and its backend: loading it quietly, devices, weights files, predictions, costs of a model.

Only this folder of ``utils`` imports Keras. Read ``quiet`` and ``devices``, then ``weights`` and
``prediction``; ``model_cost`` describes a model, ``masked_softmax`` serves attention.
"""
