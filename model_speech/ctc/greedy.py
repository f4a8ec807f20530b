"""Logits of a stream in, tokens as they end out: `greedy_decode` for an utterance that isn't over yet."""

from __future__ import annotations

import numpy as np


class GreedyStream:
    """Best class of each frame, repeats merged, blanks dropped, from call to call.

    Args:
        blank: class of the blank.
    """

    def __init__(self, blank: int):
        self._blank = blank
        self.reset()

    def reset(self) -> None:
        """Forget all frames."""
        self._frames = 0
        self._class = self._blank  # of the run of equal classes that the last frame belongs to
        self._peak, self._best = 0, -np.inf  # its most certain frame, and the log-probability there

    def feed(self, logits: np.ndarray) -> list[tuple[int, int]]:
        """Take the next frames (m, C); returns each token that has ended, with the frame of its peak."""
        ended = []
        classes = logits.argmax(axis=1)
        highest = logits[np.arange(len(logits)), classes]
        # Of the best class: highest minus the logarithm of the sum.
        certainty = -np.log(np.exp(logits - highest[:, None]).sum(axis=1))
        for best, score in zip(classes.tolist(), certainty.tolist(), strict=True):
            if best != self._class:
                ended += self._ended()
                self._class, self._best = best, -np.inf
            if score > self._best:
                self._peak, self._best = self._frames, score
            self._frames += 1
        return ended

    def flush(self) -> list[tuple[int, int]]:
        """The token that the end of the stream ends, if there is one; then `reset`."""
        ended = self._ended()
        self.reset()
        return ended

    def _ended(self) -> list[tuple[int, int]]:
        return [] if self._class == self._blank else [(self._class, self._peak)]
