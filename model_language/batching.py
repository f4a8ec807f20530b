"""Groups sentences of similar length into batches, and divides long sentences into overlapping windows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LONGEST_WINDOW = 512
"""Largest number of syllables in a window; the memory that attention needs grows with the square of it."""
CONTEXT = 64
"""Syllables on each side of a position that its window contains at least, except at the sentence's ends."""


def length_batches(lengths: Sequence[int], budget: int) -> list[np.ndarray]:
    """Group sentences of similar length.

    Args:
        lengths: syllables of each sentence.
        budget: largest number of padded syllables (longest sentence × sentences) in a batch; a single
            sentence may exceed it.

    Returns:
        Indices of the sentences of each batch; empty sentences are in no batch.
    """
    lengths = np.asarray(lengths, np.int64)
    order = np.argsort(lengths, kind="stable")
    order = order[lengths[order] > 0]
    batches, start = [], 0
    for stop in range(1, len(order) + 1):
        # Ascending order: the next sentence would be the longest of the batch.
        if stop == len(order) or (stop - start + 1) * lengths[order[stop]] > budget:
            batches.append(order[start:stop])
            start = stop
    return batches


@dataclass(frozen=True)
class Window:
    """A part of a sentence, and the positions whose results are taken from it.

    Attributes:
        start, end: the window; ``end`` is exclusive.
        first, last: the positions whose results are taken from it; ``last`` is exclusive.
    """

    start: int
    end: int
    first: int
    last: int

    @property
    def kept(self) -> slice:
        """The positions from ``first`` to ``last``, counted from the start of the window."""
        return slice(self.first - self.start, self.last - self.start)


def windows(length: int, longest: int = LONGEST_WINDOW, context: int = CONTEXT) -> list[Window]:
    """Cover a sentence with overlapping windows of equal length; a short sentence is one window.

    Args:
        length: syllables of the sentence.
        longest: syllables of a window, more than twice ``context``.
        context: syllables between a position and the end of its window, except at the sentence's own ends.
    """
    if length <= longest:
        return [Window(0, length, 0, length)]
    covered, first = [], 0
    while first < length:
        start = min(max(0, first - context), length - longest)
        end = start + longest
        last = length if end == length else end - context
        covered.append(Window(start, end, first, last))
        first = last
    return covered
