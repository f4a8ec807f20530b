"""The loss between the distributions of a teacher and a CTC model, frame by frame."""

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
    log_p, log_q = (ops.log_softmax(ops.cast(each, "float32"), axis=-1) for each in (teacher, student))
    log_p = ops.stop_gradient(log_p)
    divergence = ops.sum(ops.exp(log_p) * (log_p - log_q), axis=-1)  # (B, T)
    valid = valid_frames(logit_lengths, ops.shape(log_q)[1])
    return ops.sum(ops.where(valid, divergence, 0.0), axis=-1)
