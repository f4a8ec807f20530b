"""A Keras model or the machine in; predictions, weights files, model costs and device descriptions out.

Only this folder of ``utils`` imports Keras. Read ``quiet``, ``devices`` and ``nvidia``, then ``weights`` and
``prediction``; ``model_cost`` and ``model_summary`` describe a model.
"""
