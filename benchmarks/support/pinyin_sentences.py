"""Transcript lists in; sentences as a converter may meet them out: with tones, without, with mistakes.

AISHELL-1 writes 余 as 馀, which no converter of simplified text does: those count as errors of all alike.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from data.manifest import read_transcripts
from tests.support.pinyin_noise import corrupt_pinyin
from utils.errors import CorpusError

THCHS, DISTINCT, AISHELL = "THCHS-30 test", "THCHS-30 test, each sentence once", "AISHELL-1 dev"
FILES = {THCHS: "thchs_test.tsv", AISHELL: "aishell_dev.tsv"}
TONED, TONELESS, NOISY = "tones", "no tones", "tones, 10 % wrong"
NOISE_RATE, SEED = 0.1, 4
# With mistakes, each reading of a sentence is another one: no set of its own for the distinct ones.
ASKED = {THCHS: (TONED, TONELESS, NOISY), DISTINCT: (TONED, TONELESS), AISHELL: (TONED, TONELESS, NOISY)}


@dataclass(frozen=True)
class Condition:
    """What a converter is asked, and the right answers.

    Attributes:
        test_set, given: names of the sentences and of how they are given.
        pinyin: of each sentence its canonical syllables, without the digit where tones aren't given.
        hanzi: what was meant.
    """

    test_set: str
    given: str
    pinyin: tuple[tuple[str, ...], ...]
    hanzi: tuple[str, ...]

    def sampled(self, most: int) -> Condition:
        """At most so many sentences, always the same ones; 0: all."""
        if not most or most >= len(self.hanzi):
            return self
        chosen = sorted(random.Random(SEED).sample(range(len(self.hanzi)), most))
        pinyin = tuple(self.pinyin[index] for index in chosen)
        return Condition(self.test_set, self.given, pinyin, tuple(self.hanzi[index] for index in chosen))


def read_conditions(folder: Path) -> list[Condition]:
    """All sentences of the transcript lists in all ways.

    Raises:
        CorpusError: a list is not there, or wrong.
    """
    conditions = []
    for name, file in FILES.items():
        if not (folder / file).is_file():
            hint = "give the folder that holds thchs_test.tsv and aishell_dev.tsv: --transcripts DIR"
            raise CorpusError("the test sentences are not here", where=folder / file, hint=hint)
        rows = [(row.pinyin, row.hanzi) for row in read_transcripts(folder / file)]
        conditions += _conditions(name, rows)
        if name == THCHS:
            once = {hanzi: (pinyin, hanzi) for pinyin, hanzi in reversed(rows)}
            conditions += _conditions(DISTINCT, list(reversed(once.values())))
    return conditions


def _conditions(name: str, rows: Sequence[tuple[tuple[str, ...], str]]) -> list[Condition]:
    toned, hanzi = [pinyin for pinyin, _ in rows], tuple(text for _, text in rows)
    ways = {
        TONED: lambda: toned,
        TONELESS: lambda: [[syllable[:-1] for syllable in sentence] for sentence in toned],
        NOISY: lambda: corrupt_pinyin(toned, NOISE_RATE, SEED),
    }
    return [Condition(name, given, tuple(map(tuple, ways[given]())), hanzi) for given in ASKED[name]]
