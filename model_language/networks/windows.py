"""A sentence of any length → windows that overlap, of which each position takes the one with most context."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST = 512  # syllables; attention needs memory by the square of it
CONTEXT = 64  # syllables on either side that a position has at least, but at the ends


@dataclass(frozen=True)
class Window:
    """What to look at, and what of it counts; all are places in the sentence.

    Attributes:
        start, end: of the window.
        first, last: of the positions whose result is taken from it; ``last`` is one behind them.
    """

    start: int
    end: int
    first: int
    last: int


def windows(length: int, longest: int = LONGEST, context: int = CONTEXT) -> list[Window]:
    """Cover a sentence; one window if it isn't too long, else all of the same length.

    Args:
        length: of the sentence, ≥ 1.
        longest: of a window, more than twice ``context``.
        context: between a position and the end of its window, but at the sentence's own ends.
    """
    if length <= longest:
        return [Window(0, length, 0, length)]
    found, first = [], 0
    while first < length:
        start = min(max(0, first - context), length - longest)
        end = start + longest
        last = length if end == length else end - context
        found.append(Window(start, end, first, last))
        first = last
    return found
