"""Runs streams over clips, and counts the errors of outputs: wrong labels, or edits of decoded CTC tokens.

It needs no framework, so the same code scores every runtime.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from streaming.chunks import StreamedModel
from streaming.conversion.modes import Mode
from utils.arrays import pad_rows


def label_errors(outputs: np.ndarray, references: np.ndarray, blank: int | None) -> np.ndarray:
    """Errors of each clip.

    Args:
        outputs: (N, labels) logits of clips, or (N, rows, classes) CTC logits.
        references: (N,) int labels, or (N, longest) int tokens, padded with -1.
        blank: class of the blank, for CTC.

    Returns:
        (N,) int: 1 if the label is wrong; for CTC the substitutions, deletions and insertions of the greedy
        decoding.
    """
    if outputs.ndim == 2 or blank is None:
        return (outputs.argmax(axis=1) != references).astype(int)
    return token_errors(references, decoded(outputs, blank))


def token_errors(references: np.ndarray, hypotheses: Sequence[Sequence[int]]) -> np.ndarray:
    """Edits of each utterance: references (N, longest), padded with -1, and N token sequences → (N,) int."""
    from rapidfuzz.distance import Levenshtein  # not on a device, which verifies a bundle without test clips

    spoken = [row[row >= 0].tolist() for row in references]
    return np.array([*map(Levenshtein.distance, spoken, hypotheses)], int)


def label_count(references: np.ndarray) -> int:
    """Number of labels, (N,) int, or of tokens, (N, longest) int padded with -1; at least 1."""
    return max(1, int((references >= 0).sum()))


def predicted_labels(outputs: np.ndarray, blank: int | None) -> np.ndarray:
    """What a model predicts, in the form of references.

    Args:
        outputs: see :func:`label_errors`.
        blank: see :func:`label_errors`.

    Returns:
        (N,) int labels, or for CTC (N, longest) int tokens, padded with -1.
    """
    if outputs.ndim == 2 or blank is None:
        return outputs.argmax(axis=1)
    return pad_rows(decoded(outputs, blank), fill=-1)


def accuracy(errors: np.ndarray, references: np.ndarray) -> float:
    """1 minus the errors per label; from 0 to 1, for tokens also below 0.

    Args:
        errors: (N,) int, see :func:`label_errors`.
        references: (N,) int labels, or (N, longest) int tokens, padded with -1.
    """
    return float(1 - errors.sum() / label_count(references))


def decoded(outputs: np.ndarray, blank: int) -> list[list[int]]:
    """Greedy decoding: (N, rows, classes) CTC logits, class of the blank → N token sequences."""
    best = outputs.argmax(axis=-1)  # (N, rows)
    begins = np.concatenate([np.ones_like(best[:, :1], bool), best[:, 1:] != best[:, :-1]], axis=1)
    return [row[keep].tolist() for row, keep in zip(best, begins & (best != blank), strict=True)]


def final_outputs(outputs: np.ndarray, delay: int) -> np.ndarray:
    """A stream's outputs for clips → the outputs that count.

    Args:
        outputs: (N, chunks, labels) of keywords: the last one counts. Or (N, chunks, rows, classes) of CTC:
            all rows count.
        delay: CTC rows at the start of a stream that belong to no sound.

    Returns:
        (N, labels), or (N, rows, classes).
    """
    if outputs.ndim == 3:
        return outputs[:, -1]
    rows = outputs.reshape(len(outputs), -1, outputs.shape[-1])  # (N, chunks · rows, classes)
    return rows[:, delay:]


def golden_outputs(mode: Mode) -> tuple[str, ...]:
    """Names of the outputs for the golden clips: streams have a reset before each clip, or none."""
    return ("reset", "running") if mode.is_streaming else ("non_stream",)


def evenly(available: int, count: int) -> np.ndarray:
    """At most ``count`` of the row indices below ``available``, evenly spaced: (n,) int."""
    return np.unique(np.linspace(0, available - 1, min(available, count)).round().astype(int))


def chunks_of(clip: np.ndarray, size: int, due: int) -> np.ndarray:
    """Cut a clip into chunks; the stream's output for the clip is complete after the last one.

    Args:
        clip: (T, …).
        size: frames (or samples) per chunk.
        due: frames until the output for the clip is complete. More than T if strides delay the last frames:
            the last frame is repeated up to there, and no exact output depends on it. Less if the model does
            not use the last frames: they are left out, because the next output would belong to a later clip.

    Returns:
        (chunks, 1, size, …) float32.
    """
    chunks = -(-due // size)
    clip = clip[: chunks * size]
    missing = chunks * size - len(clip)
    padded = np.pad(clip, [(0, missing)] + [(0, 0)] * (clip.ndim - 1), mode="edge")
    return padded.reshape(chunks, 1, size, *clip.shape[1:]).astype(np.float32, copy=False)


def streamed(
    stream: StreamedModel, clips: Iterable[np.ndarray], size: int, due: int, reset: bool
) -> np.ndarray:
    """All outputs of a stream for a sequence of clips.

    Args:
        stream: is reset before the first clip.
        clips: (T, …) each, all of one length.
        size: see :func:`chunks_of`.
        due: see :func:`chunks_of`.
        reset: whether the stream is reset before each clip.

    Returns:
        (clips, chunks, …) float32.
    """
    stream.reset()
    outputs = []
    for clip in clips:
        if reset:
            stream.reset()
        outputs.append(np.stack([stream.step(chunk)[0] for chunk in chunks_of(clip, size, due)]))
    return np.stack(outputs)
