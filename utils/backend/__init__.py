"""What all rooms need of Keras and its backend: loading it, devices, weights files, predictions, model costs.

Only this folder of ``utils`` imports Keras. Read ``quiet``, ``devices`` and ``nvidia``, then ``weights`` and
``prediction``; ``model_cost`` and ``model_summary`` describe a model, ``masked_softmax`` serves attention.
"""
