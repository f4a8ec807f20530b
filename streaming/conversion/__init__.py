"""Converts a Keras model of whole clips to a model of chunks with the same weights and outputs.

Read ``modes`` (the three ways to run a model), ``graph`` (the layers in order), ``timing`` and ``rules`` (how
each layer streams), ``plan`` (the whole stream, or the obstacles), ``layers`` (those that keep state) and
``convert``. The model as it was built and trained is called the plain model.
"""
