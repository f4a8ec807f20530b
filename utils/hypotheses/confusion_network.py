"""A confusion network, which is a list of slots with alternative syllables, and its paths, the best first.

``model_speech.ctc.posteriors`` computes the networks; ``model_language.search.joint`` chooses hanzi for them.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

NOTHING = ""
"""Stands for the alternative that there is no syllable in a slot."""


@dataclass(frozen=True)
class Slot:
    """A stretch of time with at most one syllable.

    Attributes:
        syllables: alternatives, the most probable first; may include :data:`NOTHING`.
        log_posteriors: natural logarithms of their probabilities, which sum to 1, or less if improbable
            alternatives were left out.
        frame: output frame of the acoustic model in which the syllable has its peak.
    """

    syllables: tuple[str, ...]
    log_posteriors: tuple[float, ...]
    frame: int


@dataclass(frozen=True)
class Path:
    """One choice of an alternative in each slot.

    Attributes:
        syllables: the chosen syllables, without :data:`NOTHING`.
        slots: the index of each syllable's slot.
        score: sum of the log-posteriors.
    """

    syllables: tuple[str, ...]
    slots: tuple[int, ...]
    score: float


@dataclass(frozen=True)
class ConfusionNetwork:
    """Slots in time order (Mangu, Brill and Stolcke, "Finding consensus in speech recognition", 2000)."""

    slots: tuple[Slot, ...]

    def paths(self) -> Iterator[Path]:
        """Generate distinct syllable sequences, the most probable first, each with its best path.

        Slots are independent, so the next best choice differs in one slot by one step (Lawler's algorithm).
        """
        best = sum(slot.log_posteriors[0] for slot in self.slots)
        choice = (0,) * len(self.slots)
        queue, seen = [(-best, choice, 0)], set()
        while queue:
            cost, choice, first = heapq.heappop(queue)
            path = self._path(choice, -cost)
            if path.syllables not in seen:
                seen.add(path.syllables)
                yield path
            # Only from the last changed slot on, so that each choice is reached once.
            for index in range(first, len(self.slots)):
                logs, rank = self.slots[index].log_posteriors, choice[index]
                if rank + 1 < len(logs):
                    step = logs[rank] - logs[rank + 1]
                    changed = (*choice[:index], rank + 1, *choice[index + 1 :])
                    heapq.heappush(queue, (cost + step, changed, index))

    def _path(self, choice: tuple[int, ...], score: float) -> Path:
        chosen = [slot.syllables[rank] for slot, rank in zip(self.slots, choice, strict=True)]
        slots = tuple(index for index, syllable in enumerate(chosen) if syllable != NOTHING)
        return Path(tuple(chosen[index] for index in slots), slots, score)
