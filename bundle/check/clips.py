"""Clips in; the chunks that every stream is fed with, and its answers, out. NumPy only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np


class Stream(Protocol):
    """The source model's stream, or an artefact's."""

    def step(self, chunk: np.ndarray) -> np.ndarray:
        """The next chunk (1, size, …) → output, with a leading axis of 1."""

    def reset(self) -> None:
        """Forget what was heard."""


def evenly(available: int, wanted: int) -> np.ndarray:
    """At most ``wanted`` of so many rows, spread evenly: (n,) int."""
    return np.unique(np.linspace(0, available - 1, min(available, wanted)).round().astype(int))


def chunks_of(clip: np.ndarray, size: int, due: int) -> np.ndarray:
    """Cut a clip into chunks; its answer is there after the last one.

    Args:
        clip: (T, …).
        size: frames (or samples) a chunk.
        due: frames until the model's answer for the clip is there: T, or some more where strides make the
            last frames wait. What lacks is filled with the last frame; no exact answer depends on it.

    Returns:
        (chunks, 1, size, …) float32.
    """
    chunks = -(-max(len(clip), due) // size)
    missing = chunks * size - len(clip)
    padded = np.pad(clip, [(0, missing)] + [(0, 0)] * (clip.ndim - 1), mode="edge")
    return padded.reshape(chunks, 1, size, *clip.shape[1:]).astype(np.float32, copy=False)


def streamed(stream: Stream, clips: Iterable[np.ndarray], size: int, due: int, reset: bool) -> np.ndarray:
    """All answers of a stream that hears clips one after the other.

    Args:
        stream: forgets everything before the first clip.
        clips: (T, …) each, all of one length.
        size: see :func:`chunks_of`; ``due`` likewise.
        reset: whether it forgets before each clip.

    Returns:
        (clips, chunks, …) float32.
    """
    stream.reset()
    answers = []
    for clip in clips:
        if reset:
            stream.reset()
        answers.append(np.stack([stream.step(chunk)[0] for chunk in chunks_of(clip, size, due)]))
    return np.stack(answers)
