"""Keyword networks with a recurrent state, from feature frames (B, T, F) to logits (B, L).

Read ``gru_lstm``, which classifies the last state; ``crnn`` has convolutions before the recurrent layer,
``att_rnn`` attention after it.
"""
