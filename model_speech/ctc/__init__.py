"""CTC: the training loss, decoding, alignment and posteriors. Only ``loss``, ``consistency`` and
``distillation`` use Keras.

Read ``loss``, ``consistency`` and ``distillation`` (training), ``greedy`` (the best class of each frame),
``prefix_beam`` (the beam search), ``shallow_fusion`` (a language model in the beam), ``decoder`` (one of the
two searches, also in worker processes), ``alignment`` (the frame of each token), ``forward_backward`` (the
probability of a sequence), ``posteriors`` (the alternatives of each token) and ``best_sequences`` (the best
of many).
"""
