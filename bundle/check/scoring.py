"""Runs streams over clips, decodes outputs to labels or CTC tokens, and counts their errors.

It needs no framework, so the same code scores every runtime.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from streaming.chunks import StreamedModel
from streaming.conversion.modes import Mode


def accuracy(references: np.ndarray, predicted: Sequence[Sequence[int]]) -> float:
    """1 minus the edits per label or token; from 0 to 1, for tokens also below 0.

    Args:
        references: (N,) int labels, or (N, longest) int tokens, padded with -1.
        predicted: N sequences of labels or tokens.
    """
    from rapidfuzz.distance import Levenshtein  # not on a device, which verifies a bundle without test clips

    spoken = [row[row >= 0].tolist() for row in references.reshape(len(references), -1)]
    return 1 - sum(map(Levenshtein.distance, spoken, predicted)) / label_count(references)


def label_count(references: np.ndarray) -> int:
    """Number of labels, (N,) int, or of tokens, (N, longest) int padded with -1; at least 1."""
    return max(1, int((references >= 0).sum()))


def decoded(outputs: np.ndarray, blank: int) -> list[list[int]]:
    """The label of each clip, or the CTC tokens of its greedy decoding.

    Args:
        outputs: (N, labels) logits of clips, or (N, rows, classes) CTC logits.
        blank: class of the blank, for CTC.
    """
    best = outputs.argmax(axis=-1)  # (N,) or (N, rows)
    if best.ndim == 1:
        return [[int(label)] for label in best]
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
