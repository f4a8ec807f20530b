"""Tasks of the comparison: decoded tokens, CTC losses and edits, ours and those of other libraries."""

from collections.abc import Sequence

import numpy as np

from benchmarks.peers.entry import Arrays, Peer, Task, Work

CLASSES = 2165  # classes of the acoustic vocabulary; the blank is the last one
BLANK, BEAM = CLASSES - 1, 10
_FIRST_LETTER = 0x4E00  # text decoders get a letter for each class
_SENTENCES, _SYLLABLES = 3000, 20


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


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


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


def beam_search_fast_ctc_decode(inputs: Arrays) -> Work:
    """Prefix beam search in Rust, with its highest threshold; the blank is its first class."""
    from fast_ctc_decode import beam_search

    alphabet = [""] + [chr(_FIRST_LETTER + token) for token in range(BLANK)]

    def work() -> Arrays:
        posteriors = np.exp(_log_softmax(np.roll(inputs["logits"], 1, axis=-1)))
        found = (beam_search(utterance, alphabet, BEAM, 0.99 / CLASSES)[0] for utterance in posteriors)
        return _padded([[ord(letter) - _FIRST_LETTER for letter in text] for text in found])

    return work


def beam_search_flashlight(inputs: Arrays) -> Work:
    """Beam search in C++, without lexicon and language model, with sums over alignments."""
    from flashlight.lib.text.decoder import (
        CriterionType,
        LexiconFreeDecoder,
        LexiconFreeDecoderOptions,
        ZeroLM,
    )

    options = LexiconFreeDecoderOptions(
        beam_size=BEAM,
        beam_size_token=40,
        beam_threshold=25.0,
        lm_weight=0.0,
        sil_score=0.0,
        log_add=True,
        criterion_type=CriterionType.CTC,
    )
    decoder = LexiconFreeDecoder(options, ZeroLM(), -1, BLANK, [])

    def work() -> Arrays:
        sequences = []
        for scores in _log_softmax(inputs["logits"]):
            path = np.array(decoder.decode(scores.ctypes.data, *scores.shape)[0].tokens)
            starts = path[np.diff(path, prepend=-1) != 0]
            sequences.append(starts[(starts != BLANK) & (starts >= 0)])
        return _padded(sequences)

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

    return _with_gradient(inputs, lambda *arguments: ctc_loss(*arguments, BLANK))


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


def misread_sentences() -> Arrays:
    """Sentences of syllables, and copies with a fifth of the syllables changed, dropped or inserted."""
    rng = np.random.default_rng(0)
    references = rng.integers(0, BLANK, (_SENTENCES, _SYLLABLES))
    hypotheses = references.copy()
    changed = rng.random(references.shape) < 0.2
    hypotheses[changed] = rng.integers(0, BLANK, int(changed.sum()))
    shift = rng.integers(0, 3, _SENTENCES)  # syllables that are missing at the beginning
    return {"references": references, "hypotheses": hypotheses, "shift": shift}


def _sentences(inputs: Arrays) -> tuple[list[list[str]], list[list[str]]]:
    hypotheses = zip(inputs["hypotheses"], inputs["shift"], strict=True)
    return (
        [[f"s{token}" for token in row] for row in inputs["references"]],
        [[f"s{token}" for token in row[shift:]] for row, shift in hypotheses],
    )


def our_edits(inputs: Arrays) -> Work:
    """Counts of errors, as for error rates."""
    from utils.metrics import count_errors, total

    references, hypotheses = _sentences(inputs)

    def work() -> Arrays:
        found = total(map(count_errors, references, hypotheses))
        return {"edits": np.array([found.substitutions, found.deletions, found.insertions])}

    return work


def edits_jiwer(inputs: Arrays) -> Work:
    """jiwer's alignment of all sentences."""
    import jiwer

    references, hypotheses = ([" ".join(row) for row in rows] for rows in _sentences(inputs))

    def work() -> Arrays:
        found = jiwer.process_words(references, hypotheses)
        return {"edits": np.array([found.substitutions, found.deletions, found.insertions])}

    return work


def edits_rapidfuzz(inputs: Arrays) -> Work:
    """RapidFuzz's edit operations, counted."""
    from rapidfuzz.distance import Levenshtein

    references, hypotheses = _sentences(inputs)

    def work() -> Arrays:
        tags = [
            edit.tag
            for reference, hypothesis in zip(references, hypotheses, strict=True)
            for edit in Levenshtein.editops(reference, hypothesis)
        ]
        return {"edits": np.array([tags.count(tag) for tag in ("replace", "delete", "insert")])}

    return work


def _same_edits(_: Arrays, ours: Arrays, theirs: Arrays) -> str:
    counts = [" + ".join(map(str, each["edits"].tolist())) for each in (ours, theirs)]
    return f"same {counts[0]} edits" if counts[0] == counts[1] else f"{counts[1]} edits, ours {counts[0]}"


_PYCTCDECODE = Peer("pyctcdecode", "beam_search_pyctcdecode", ("pyctcdecode==0.5.0",))
_NUMPY = "numpy==2.4.6"

TASKS = (
    Task(
        "CTC beam search",
        __name__,
        trained_logits,
        "our_beam_search",
        (
            _PYCTCDECODE,
            Peer("flashlight-text", "beam_search_flashlight", ("flashlight-text==0.0.7", _NUMPY)),
        ),
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
            Peer("fast-ctc-decode", "beam_search_fast_ctc_decode", ("fast-ctc-decode==0.3.7", _NUMPY)),
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
    Task(
        "edits",
        __name__,
        misread_sentences,
        "our_edits",
        (
            Peer("jiwer", "edits_jiwer", ("jiwer==4.0.0", _NUMPY)),
            Peer("RapidFuzz", "edits_rapidfuzz", ("rapidfuzz==3.14.6", _NUMPY)),
        ),
        _same_edits,
    ),
)
