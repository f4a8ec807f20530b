"""Reads transcript lists as inputs of converters: with tones, without tones, with recognition errors.

AISHELL-1 writes 余 as 馀, which no converter of simplified text does: an error of every converter.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.support.pinyin_noise import corrupt_pinyin
from data.manifest import read_transcripts
from utils.errors import CorpusError

THCHS, AISHELL = "THCHS-30 test", "AISHELL-1 dev"
FILES = {THCHS: "thchs_test.tsv", AISHELL: "aishell_dev.tsv"}
TONED, TONELESS, NOISY = "tones", "no tones", "tones, 10 % wrong"
NOISE_RATE, SEED = 0.1, 4


@dataclass(frozen=True)
class Condition:
    """The inputs of a converter, and the correct outputs.

    Attributes:
        test_set, given: names of the sentences and of the form of the input.
        pinyin: canonical syllables of each sentence, without the digit in the form without tones.
        hanzi: the references.
    """

    test_set: str
    given: str
    pinyin: tuple[tuple[str, ...], ...]
    hanzi: tuple[str, ...]

    def sampled(self, most: int) -> Condition:
        """At most this many sentences, always the same ones; 0: all."""
        if not most or most >= len(self.hanzi):
            return self
        chosen = sorted(random.Random(SEED).sample(range(len(self.hanzi)), most))
        pinyin = tuple(self.pinyin[index] for index in chosen)
        return Condition(self.test_set, self.given, pinyin, tuple(self.hanzi[index] for index in chosen))


def read_conditions(folder: Path) -> list[Condition]:
    """All sentences of the transcript lists in all forms.

    Raises:
        CorpusError: a list is missing or wrong.
    """
    conditions = []
    for name, file in FILES.items():
        if not (folder / file).is_file():
            hint = "give the folder that holds thchs_test.tsv and aishell_dev.tsv: --transcripts DIR"
            raise CorpusError("the test sentences are missing", where=folder / file, hint=hint)
        rows = read_transcripts(folder / file)
        toned, hanzi = [row.pinyin for row in rows], tuple(row.hanzi for row in rows)
        forms: dict[str, list[Any]] = {
            TONED: toned,
            TONELESS: [[syllable[:-1] for syllable in sentence] for sentence in toned],
            NOISY: corrupt_pinyin(toned, NOISE_RATE, SEED),
        }
        conditions += [Condition(name, form, tuple(map(tuple, each)), hanzi) for form, each in forms.items()]
    return conditions
