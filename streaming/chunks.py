"""Cuts pieces of any length into chunks of one size; the interface of a streamed model. NumPy only."""

from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np


class StreamedModel(Protocol):
    """A streamed model in any runtime."""

    def step(self, chunk: np.ndarray) -> np.ndarray:
        """Process the next chunk ``(1, size, …)``; return the output, with a leading axis of 1."""

    def reset(self) -> None:
        """Start a new stream."""


class ChunkBuffer:
    """Collects frames (or samples) until a chunk is complete.

    Args:
        size: frames per chunk.
    """

    def __init__(self, size: int):
        self._size = size
        self.reset()

    def reset(self) -> None:
        """Drop the frames of the incomplete chunk."""
        self._rest: np.ndarray | None = None

    def feed(self, frames: np.ndarray) -> np.ndarray:
        """Add frames (n, …); return the chunks that they complete, (chunks, 1, size, …)."""
        frames = frames if self._rest is None else np.concatenate([self._rest, frames])
        complete = len(frames) // self._size * self._size
        self._rest = frames[complete:]
        return frames[:complete].reshape(-1, 1, self._size, *frames.shape[1:])


def cut_blocks(blocks: Iterable[np.ndarray], size: int) -> Iterator[np.ndarray]:
    """The same samples, in pieces (n,) of at most ``size``."""
    for block in blocks:
        for start in range(0, len(block), size):
            yield block[start : start + size]
