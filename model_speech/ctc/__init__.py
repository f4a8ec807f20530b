"""CTC: the training loss, decoding, alignment and posteriors. Only ``loss`` and ``distillation`` use Keras.

Read ``loss`` and ``distillation`` (training), ``decoder`` (the best class of each frame, or the beam search,
also in worker processes), ``prefix_beam`` (the beam search), ``shallow_fusion`` (a language model in the
beam), ``alignment`` (the frame of each token), ``forward_backward`` (the probability of a sequence),
``posteriors`` (the alternatives of each token) and ``best_sequences`` (the best of many).
"""
