"""CTC: labels and logits in; loss, hypotheses, alignments and posteriors out.

Read ``loss``, ``prefix_beam`` (greedy and beam search), ``shallow_fusion`` (a language model in the beam),
``decoder`` (many utterances in processes), ``greedy`` (token by token for a stream), ``alignment`` (forced
alignment), ``posteriors`` (alternatives of each token) and ``scoring`` (log-probability of a given sequence).
"""
