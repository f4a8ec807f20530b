"""The loss between the distributions of a teacher and a CTC model, frame by frame."""

from keras import ops

from model_speech.ctc.loss import valid_frames


def distillation_loss(classes, probabilities, student, logit_lengths):
    """Σ_t Σ_k p_t(k) · log(p_t(k) / q_t(k)), over the teacher's most probable classes k of each frame t.

    p and q are the distributions of the teacher and of the student. Hinton et al., "Distilling the knowledge
    in a neural network" (arXiv:1503.02531), at temperature 1. The student also learns in which frame to emit
    a token, which CTC alone leaves open (Kurata & Audhkhasi, "Guiding CTC posterior spike timings",
    arXiv:1904.08311).

    Args:
        classes: (B, T, K) int, classes of the student.
        probabilities: (B, T, K) float, p of these; a frame in which all are 0 has no influence.
        student: (B, T, C) float logits.
        logit_lengths: (B,) int, at most T; later frames have no influence and get no gradient.

    Returns:
        (B,) float32, in nats, summed over the frames of an utterance.
    """
    p = ops.cast(probabilities, "float32")
    valid = valid_frames(logit_lengths, ops.shape(student)[1])
    # Zeroed before the logarithms: what is not a number would come back through the gradient.
    student = ops.where(valid[:, :, None], ops.cast(student, "float32"), 0.0)
    log_q = ops.take_along_axis(ops.log_softmax(student, axis=-1), classes, axis=-1)
    log_p = ops.log(ops.where(p > 0.0, p, 1.0))
    divergence = ops.sum(p * (log_p - log_q), axis=-1)  # (B, T)
    return ops.sum(ops.where(valid, divergence, 0.0), axis=-1)
