"""Losses between the distributions of a teacher and a CTC model, or of two views of one, frame by frame."""

from keras import ops

from model_speech.ctc.loss import valid_frames


def distillation_loss(teacher, student, logit_lengths):
    """Σ_t KL(p_t ‖ q_t) of the teacher's and the student's distributions p and q over the classes.

    Hinton et al., "Distilling the knowledge in a neural network" (arXiv:1503.02531), at temperature 1. Both
    models must have the same frame rate: the student also learns in which frame to emit a token, which CTC
    alone leaves open (Kurata & Audhkhasi, "Guiding CTC posterior spike timings", arXiv:1904.08311).

    Args:
        teacher: (B, T, C) float logits; they get no gradient.
        student: (B, T, C) float logits.
        logit_lengths: (B,) int, at most T; later frames have no influence and get no gradient.

    Returns:
        (B,) float32, in nats, summed over the frames of an utterance.
    """
    return kl_divergence(frame_log_probs(teacher), frame_log_probs(student), logit_lengths)


def frame_log_probs(logits):
    """Log-probabilities of the classes: (B, T, C) float → float32."""
    return ops.log_softmax(ops.cast(logits, "float32"), axis=-1)


def kl_divergence(log_p, log_q, logit_lengths):
    """Σ_t KL(p_t ‖ q_t): log-probabilities (B, T, C), lengths (B,) → (B,); p is a target without gradient."""
    log_p = ops.stop_gradient(log_p)
    divergence = ops.sum(ops.exp(log_p) * (log_p - log_q), axis=-1)  # (B, T)
    valid = valid_frames(logit_lengths, ops.shape(log_q)[1])
    return ops.sum(ops.where(valid, divergence, 0.0), axis=-1)


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
