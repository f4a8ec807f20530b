"""Loss that makes the outputs for two differently masked views of the same utterances agree (CR-CTC)."""

from model_speech.ctc.distillation import frame_log_probs, kl_divergence


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
    log_p, log_q = frame_log_probs(first), frame_log_probs(second)
    return 0.5 * (kl_divergence(log_q, log_p, logit_lengths) + kl_divergence(log_p, log_q, logit_lengths))
