"""Dictionary unigram converter: the most probable division into words of jieba's dictionary.

The simplest possible converter: the readings of pypinyin are looked up in reverse, and the words of a
sentence are chosen by the product of their frequencies.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from pypinyin.constants import PINYIN_DICT

from benchmarks.converters.entry import Entry, in_package, without_tone
from utils.errors import CorpusError
from utils.mandarin.hanzi_readings import phrase_readings
from utils.mandarin.pinyin import is_hanzi, normalise_syllable

UNKNOWN = "□"
_LONGEST = 8  # syllables of a word
_UNKNOWN_LOG = math.log(0.1)  # log count of a character with a reading that no dictionary has

ENTRIES = (
    Entry(
        "dictionary unigram (jieba, pypinyin)",
        in_package(
            "jieba", ("jieba==0.42.1", "pypinyin==0.55.0", "numpy==2.4.6"), "dictionary:build_dictionary"
        ),
        tones=True,
        spelling=str,
    ),
)


class DictionaryUnigram:
    """Finds the most probable words.

    Args:
        words: words with their counts. If a character has several readings, the first one, pypinyin's most
        frequent,
            gets half of its count, and the others divide the rest.
    """

    def __init__(self, words: Iterable[tuple[str, int]]):
        self._best: dict[tuple[str, ...], tuple[float, str]] = {}
        kept = [(w, n) for w, n in words if n and len(w) <= _LONGEST and is_hanzi(w)]
        total = math.log(sum(count for _, count in kept) or 1)
        self._unknown = _UNKNOWN_LOG - total
        for word, count in kept:
            self._add(word, math.log(count) - total)

    def _add(self, word: str, score: float) -> None:
        readings = _readings(word)
        fractions: dict[tuple[str, ...], float] = defaultdict(float)
        for index, reading in enumerate(readings):
            fraction = 1.0 if len(readings) == 1 else 0.5 if not index else 0.5 / (len(readings) - 1)
            for key in (reading, tuple(map(without_tone, reading))):
                fractions[key] += fraction
        for key, fraction in fractions.items():
            part = score + math.log(fraction)
            if part > self._best.get(key, (-math.inf, ""))[0]:
                self._best[key] = (part, word)

    def convert(self, sentence: Sequence[str]) -> str:
        """The best words of a sentence, with or without tones."""
        best = [(0.0, "")]  # up to each syllable: score, text
        for end in range(1, len(sentence) + 1):
            best.append(
                max(
                    (best[start][0] + score, best[start][1] + word)
                    for start in range(max(0, end - _LONGEST), end)
                    for score, word in self._found(tuple(sentence[start:end]))
                )
            )
        return best[-1][1]

    def _found(self, syllables: tuple[str, ...]) -> list[tuple[float, str]]:
        if syllables in self._best:
            return [self._best[syllables]]
        if len(syllables) > 1:
            return []
        # A reading that no character has may have a wrong tone.
        _, word = self._best.get((without_tone(syllables[0]),), (0.0, UNKNOWN))
        return [(self._unknown, word)]


def build_dictionary() -> Callable[[Sequence[Sequence[str]]], list[str]]:
    """The converter with jieba's dictionary."""
    import jieba

    with jieba.get_dict_file() as file:
        rows = (line.decode("utf-8").split() for line in file)
        model = DictionaryUnigram((row[0], int(row[1])) for row in rows if len(row) > 1)
    return lambda sentences: [model.convert(sentence) for sentence in sentences]


def _readings(word: str) -> list[tuple[str, ...]]:
    """Readings of a word: all of a character, one of a longer word; none if pypinyin has none."""
    try:
        if len(word) > 1:
            return [tuple(map(normalise_syllable, phrase_readings(word)))]
        return [
            (normalise_syllable(reading),) for reading in PINYIN_DICT.get(ord(word), "").split(",") if reading
        ]
    except CorpusError:
        return []
