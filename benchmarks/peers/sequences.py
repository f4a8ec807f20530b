"""Tasks of the comparison: decoded tokens and CTC losses, ours and those of other libraries."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from benchmarks.peers.entry import Arrays, Peer, Task, Work

CLASSES = 2165  # classes of the acoustic vocabulary; the blank is the last one
BLANK, BEAM = CLASSES - 1, 10
_FIRST_LETTER = 0x4E00  # text decoders get a letter for each class


def trained_logits(utterances: int = 16, frames: int = 150) -> Arrays:
    """Logits with the peaks of a trained model: mostly the blank, sometimes competing classes."""
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(utterances, frames, CLASSES)).astype(np.float32)
    logits[..., BLANK] += 9.0
    for row, frame in zip(*np.nonzero(rng.random((utterances, frames)) < 0.3), strict=True):
        logits[row, frame, rng.integers(0, CLASSES, 6)] += rng.uniform(4.0, 10.0, 6)
    return {"logits": logits}


def _padded(sequences: Sequence[Sequence[int]]) -> Arrays:
    tokens = np.full((len(sequences), max(map(len, sequences), default=0)), -1)
    for row, sequence in zip(tokens, sequences, strict=True):
        row[: len(sequence)] = sequence
    return {"tokens": tokens}


def our_beam_search(inputs: Arrays) -> Work:
    """Prefix beam search of the whole batch."""
    from model_speech.ctc.prefix_beam import beam_search

    logits = inputs["logits"]
    lengths = np.full(len(logits), logits.shape[1])
    return lambda: _padded([best.tokens for (best,) in beam_search(logits, lengths, BLANK, BEAM)])


def beam_search_pyctcdecode(inputs: Arrays) -> Work:
    """Prefix beam search in Python, without a language model, with its own thresholds."""
    from pyctcdecode import build_ctcdecoder

    decoder = build_ctcdecoder([chr(_FIRST_LETTER + token) for token in range(BLANK)] + [""])

    def work() -> Arrays:
        texts = (decoder.decode(logits, beam_width=BEAM) for logits in inputs["logits"])
        return _padded([[ord(letter) - _FIRST_LETTER for letter in text] for text in texts])

    return work


def beam_search_tensorflow(inputs: Arrays) -> Work:
    """TensorFlow's prefix beam search in C++."""
    import tensorflow as tf

    logits = inputs["logits"].transpose(1, 0, 2)
    lengths = np.full(logits.shape[1], len(logits), np.int32)

    def work() -> Arrays:
        (path,), _ = tf.nn.ctc_beam_search_decoder(logits, lengths, beam_width=BEAM)
        return {"tokens": tf.sparse.to_dense(path, default_value=-1).numpy()}

    return work


def _scores(inputs: Arrays, ours: Arrays, theirs: Arrays) -> str:
    from model_speech.ctc.forward_backward import sequence_score

    pairs = []
    for logits, *rows in zip(inputs["logits"], ours["tokens"], theirs["tokens"], strict=True):
        pairs.append([sequence_score(logits, row[row >= 0], BLANK) for row in rows])
    gains = np.array([own - other for own, other in pairs])
    equal, better = int((np.abs(gains) < 1e-3).sum()), int((gains >= 1e-3).sum())
    return f"same best in {equal} of {len(gains)}, ours more probable in {better}"


def random_targets(utterances: int = 32, frames: int = 75, labels: int = 20) -> Arrays:
    """Logits of an untrained model, and labels."""
    rng = np.random.default_rng(0)
    return {
        "logits": rng.normal(size=(utterances, frames, CLASSES)).astype(np.float32),
        "labels": rng.integers(0, BLANK, (utterances, labels)).astype(np.int32),
    }


def _with_gradient(inputs: Arrays, loss) -> Work:
    """Value of ``loss(labels, logits, label_lengths, logit_lengths)`` and its gradient, in one graph."""
    import tensorflow as tf

    logits, labels = tf.constant(inputs["logits"]), tf.constant(inputs["labels"])
    lengths = [tf.fill([len(inputs["logits"])], each.shape[1]) for each in (labels, logits)]

    @tf.function
    def step(logits):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            values = loss(labels, logits, *lengths)
        return values, tape.gradient(values, logits)

    def work() -> Arrays:
        values, gradient = step(logits)
        return {"values": values.numpy(), "gradient": gradient.numpy()}

    return work


def our_loss(inputs: Arrays) -> Work:
    """The loss of training."""
    from model_speech.ctc.loss import ctc_loss

    return _with_gradient(inputs, partial(ctc_loss, blank=BLANK))


def loss_keras(inputs: Arrays) -> Work:
    """Keras's loss."""
    from keras import ops

    return _with_gradient(inputs, lambda *arguments: ops.ctc_loss(*arguments, mask_index=BLANK))


def loss_tensorflow(inputs: Arrays) -> Work:
    """TensorFlow's loss."""
    import tensorflow as tf

    return _with_gradient(
        inputs,
        lambda *arguments: tf.nn.ctc_loss(*arguments, logits_time_major=False, blank_index=BLANK),
    )


def _same_losses(_: Arrays, ours: Arrays, theirs: Arrays) -> str:
    value = np.abs(ours["values"] / theirs["values"] - 1).max()
    gradient = np.abs(ours["gradient"] - theirs["gradient"]).max()
    return f"largest difference: value {value:.0e} of it, gradient {gradient:.0e}"


_PYCTCDECODE = Peer("pyctcdecode", "beam_search_pyctcdecode", ("pyctcdecode==0.5.0",))

TASKS = (
    Task(
        "CTC beam search",
        __name__,
        trained_logits,
        "our_beam_search",
        (_PYCTCDECODE,),
        _scores,
    ),
    Task(
        "CTC beam search of one utterance",
        __name__,
        lambda: trained_logits(1),
        "our_beam_search",
        (
            _PYCTCDECODE,
            Peer("TensorFlow", "beam_search_tensorflow"),
        ),
        _scores,
    ),
    Task(
        "CTC loss and gradient",
        __name__,
        random_targets,
        "our_loss",
        (Peer("keras.ops.ctc_loss", "loss_keras"), Peer("tf.nn.ctc_loss", "loss_tensorflow")),
        _same_losses,
    ),
)
