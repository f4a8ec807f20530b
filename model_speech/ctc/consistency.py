"""Loss that makes the outputs for two differently masked views of the same utterances agree (CR-CTC)."""

from keras import ops

from model_speech.ctc.loss import valid_frames


def consistency_loss(first, second, logit_lengths):
    """Consistency regularisation of CTC: each view learns the distributions of the other.

    Yao et al., "CR-CTC: Consistency regularization on CTC for improved speech recognition"
    (arXiv:2410.05101), equations 3 and 4: ½ Σ_t KL(sg(q_t) ‖ p_t) + KL(sg(p_t) ‖ q_t), where sg stops the
    gradient.

    Args:
        first: (B, T, C) float logits of one view.
        second: (B, T, C) float logits of the other view.
        logit_lengths: (B,) int, at most T; later frames have no influence and get no gradient.

    Returns:
        (B,) float32, in nats, summed over the frames of an utterance.
    """
    log_p, log_q = (ops.log_softmax(ops.cast(logits, "float32"), axis=-1) for logits in (first, second))
    fixed_log_p, fixed_log_q = ops.stop_gradient(log_p), ops.stop_gradient(log_q)
    divergence = ops.sum(
        ops.exp(fixed_log_q) * (fixed_log_q - log_p) + ops.exp(fixed_log_p) * (fixed_log_p - log_q), axis=-1
    )  # (B, T)
    valid = valid_frames(logit_lengths, ops.shape(first)[1])
    return 0.5 * ops.sum(ops.where(valid, divergence, 0.0), axis=-1)
