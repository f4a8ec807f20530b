"""Keras and the framework below it: a quiet start, devices, weights files, predictions, cost of a model.

In: a Keras model or the environment. Out: arrays, numbers and messages; only this folder of ``utils`` knows
Keras. Read ``quiet``, ``devices`` and ``nvidia``, then ``weights`` and ``prediction``; ``model_cost`` and
``model_summary`` describe a model.
"""
