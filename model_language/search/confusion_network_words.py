"""User words and a confusion network in; which of its syllables may be which characters of words, out."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from model_language.search.user_words import UserWord, UserWords
from utils.hypotheses.confusion_network import NOTHING, ConfusionNetwork


class WordsInNetwork:
    """Where user words may come in a network.

    Args:
        network: slots.
        words: any number.

    Attributes:
        steps: (slot, syllable, character) → the words of which it may be the next character.
    """

    def __init__(self, network: ConfusionNetwork, words: UserWords):
        self.steps: dict[tuple[int, str, str], list[tuple[int, int, UserWord]]] = {}
        self._network = network
        if not len(words):
            return
        numbers = {id(word): number for number, word in enumerate(words.words)}
        for start in range(len(network.slots)):
            for first, second in self._pairs(start):
                for word in words.beginning_with(first[1], second[1] if second else None):
                    self._follow(word, numbers[id(word)], [first, second] if second else [first])

    def hanzi(self, known: Collection[str]) -> list[str]:
        """Characters of these words that aren't ``known``."""
        return sorted({character for _, _, character in self.steps if character not in known})

    def at(self, slot: int, syllable: str) -> list[str]:
        """Characters of words that may come for a syllable of a slot."""
        return [c for (place, said, c) in self.steps if (place, said) == (slot, syllable)]

    def _pairs(self, start: int) -> Iterable[tuple[tuple[int, str], tuple[int, str] | None]]:
        for syllable in self._said(start):
            yield (start, syllable), None
            for following in self._after(start):
                yield (start, syllable), following

    def _said(self, slot: int) -> list[str]:
        return [syllable for syllable in self._network.slots[slot].syllables if syllable != NOTHING]

    def _after(self, slot: int) -> Iterable[tuple[int, str]]:
        """The (slot, syllable) that may come next: slots in which nothing may be said can be passed over."""
        for place in range(slot + 1, len(self._network.slots)):
            yield from ((place, syllable) for syllable in self._said(place))
            if NOTHING not in self._network.slots[place].syllables:
                return

    def _follow(self, word: UserWord, number: int, taken: list[tuple[int, str]]) -> None:
        """Note all ways to complete a word that begins with these syllables."""
        if not all(word.reads(i, syllable) for i, (_, syllable) in enumerate(taken)):
            return
        if len(taken) == len(word.hanzi):
            for before, (slot, syllable) in enumerate(taken):
                steps = self.steps.setdefault((slot, syllable, word.hanzi[before]), [])
                if (number, before, word) not in steps:
                    steps.append((number, before, word))
            return
        for following in self._after(taken[-1][0]):
            self._follow(word, number, [*taken, following])
