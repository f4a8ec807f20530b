"""Cuts clips into chunks, and runs a stream over the chunks of many clips. NumPy only."""

from collections.abc import Iterable

import numpy as np

from streaming.chunks import StreamedModel
from streaming.conversion.modes import Mode


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
