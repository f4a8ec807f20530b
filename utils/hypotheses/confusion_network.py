"""What an acoustic model isn't sure of: slots in time order, each with syllables and their posteriors."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

NOTHING = ""
"""Stands for no syllable: the one that was found there may not have been said."""


@dataclass(frozen=True)
class Slot:
    """A place where at most one syllable was said.

    Attributes:
        syllables: alternatives, the most probable first; :data:`NOTHING` is one of them or not.
        log_posteriors: natural logarithms, of each; their probabilities sum to 1.
        frame: output frame of the acoustic model in which the syllable peaks, or would.
    """

    syllables: tuple[str, ...]
    log_posteriors: tuple[float, ...]
    frame: int


@dataclass(frozen=True)
class Path:
    """One way through a network.

    Attributes:
        syllables: without :data:`NOTHING`.
        slots: which slot each came from.
        score: sum of the slots' log-posteriors.
    """

    syllables: tuple[str, ...]
    slots: tuple[int, ...]
    score: float


@dataclass(frozen=True)
class ConfusionNetwork:
    """Slots in time order (Mangu, Brill and Stolcke, "Finding consensus in speech recognition", 2000)."""

    slots: tuple[Slot, ...]

    def paths(self) -> Iterator[Path]:
        """Different syllable sequences, the most probable first, each by its best way; lazily.

        Slots are independent, so the next best choice differs in one slot by one step (Lawler's scheme).
        """
        best = sum(slot.log_posteriors[0] for slot in self.slots)
        choice = (0,) * len(self.slots)
        queue, given = [(-best, choice, 0)], set()
        while queue:
            cost, choice, first = heapq.heappop(queue)
            path = self._path(choice, -cost)
            if path.syllables not in given:
                given.add(path.syllables)
                yield path
            # Only slots from the last changed one on: each choice is reached in one way.
            for place in range(first, len(self.slots)):
                logs, taken = self.slots[place].log_posteriors, choice[place]
                if taken + 1 < len(logs):
                    step = logs[taken] - logs[taken + 1]
                    changed = (*choice[:place], taken + 1, *choice[place + 1 :])
                    heapq.heappush(queue, (cost + step, changed, place))

    def _path(self, choice: tuple[int, ...], score: float) -> Path:
        taken = [
            (slot.syllables[i], place) for place, (slot, i) in enumerate(zip(self.slots, choice, strict=True))
        ]
        said = [(syllable, place) for syllable, place in taken if syllable != NOTHING]
        return Path(tuple(s for s, _ in said), tuple(p for _, p in said), score)
