"""A Keras model of whole clips in; a model that takes chunks, with the same weights and answers, out.

Read ``modes`` (the four ways to run a model), ``graph`` (the layers in order), ``timing`` and ``rules`` (what
becomes of a layer in a stream), ``plan`` (the whole stream, or what is in the way), ``layers`` (those that
carry state) and ``convert``; ``runner`` feeds a stream, ``streamability`` describes it.
"""
