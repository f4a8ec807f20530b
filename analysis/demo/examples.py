"""``hypotheses.tsv`` in, sentences to show out: syllable by syllable, what was said beside what was heard."""

from __future__ import annotations

import csv
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pypinyin.contrib.tone_convert import to_tone

from analysis.errors.alignment import Pair, align
from utils.errors import CorpusError
from utils.mandarin.syllable_distance import syllable_distance

RIGHT, MISHEARD, MISWRITTEN = "right", "misheard", "miswritten"
TEXTS = ("id", "reference_pinyin", "pinyin", "reference_hanzi", "hanzi")
COLUMNS = (*TEXTS, "syllable_errors", "hanzi_errors")


@dataclass(frozen=True)
class Sentence:
    """One row of ``hypotheses.tsv``; hanzi are empty where there was no second stage."""

    id: str
    reference_pinyin: tuple[str, ...]
    pinyin: tuple[str, ...]
    reference_hanzi: str
    hanzi: str
    errors: int


@dataclass(frozen=True)
class Cell:
    """A place of the alignment: hanzi and pinyin (with tone marks) on both sides, empty for nothing there.

    ``kind`` is ``right``, ``misheard`` (another syllable, or one too few or too many) or ``miswritten`` (the
    right syllable, but another hanzi).
    """

    said_hanzi: str
    said_pinyin: str
    heard_hanzi: str
    heard_pinyin: str
    kind: str


@dataclass(frozen=True)
class Example:
    """A sentence ready to be shown."""

    id: str
    errors: int
    cells: tuple[Cell, ...]


def read_hypotheses(path: str | Path) -> list[Sentence]:
    """The rows of a ``hypotheses.tsv`` as ``test.py`` writes it; errors are hanzi errors if there are hanzi.

    Raises:
        CorpusError: the file is missing or a column is.
    """
    path = Path(path)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            table = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            missing = [name for name in COLUMNS if name not in (table.fieldnames or ())]
            if missing:
                raise CorpusError(f"no column {', '.join(missing)}", where=path, hint="see test.py")
            return [_sentence(row) for row in table]
    except (OSError, UnicodeDecodeError, ValueError, TypeError, AttributeError) as error:
        raise CorpusError(f"not a table of hypotheses ({error})", where=path, hint="run test.py") from error


def choose_examples(
    sentences: Sequence[Sentence], right: int = 4, worst: int = 4, drawn: int = 6, seed: int = 0
) -> tuple[list[Sentence], list[Sentence], list[Sentence]]:
    """Sentences to show: the longest right ones, the worst ones, and some of the other wrong ones by lot.

    Args:
        sentences: a whole test set.
        right, worst, drawn: how many of each, at most.
        seed: of the lot.
    """
    correct = sorted((one for one in sentences if not one.errors), key=lambda one: (-len(one.pinyin), one.id))
    wrong = sorted((one for one in sentences if one.errors), key=lambda one: (-_rate(one), one.id))
    others = wrong[worst:]
    lot = random.Random(seed).sample(others, min(drawn, len(others)))
    return correct[:right], wrong[:worst], sorted(lot, key=lambda one: (one.errors, one.id))


def align_example(sentence: Sentence) -> Example:
    """Pair up the syllables that were said and heard, each with its hanzi."""
    pairs = align(sentence.reference_pinyin, sentence.pinyin, syllable_distance)
    return Example(sentence.id, sentence.errors, tuple(_cell(pair, sentence) for pair in pairs))


def _sentence(row: dict[str, str]) -> Sentence:
    name, said, heard, said_hanzi, heard_hanzi = (row[column] for column in TEXTS)
    errors = int(row["hanzi_errors"] if said_hanzi and heard_hanzi else row["syllable_errors"])
    return Sentence(name, tuple(said.split()), tuple(heard.split()), said_hanzi, heard_hanzi, errors)


def _rate(sentence: Sentence) -> float:
    return sentence.errors / max(len(sentence.reference_pinyin), 1)


def _cell(pair: Pair, sentence: Sentence) -> Cell:
    said = _hanzi(sentence.reference_hanzi, len(sentence.reference_pinyin), pair.reference_position)
    heard = _hanzi(sentence.hanzi, len(sentence.pinyin), pair.hypothesis_position)
    kind = RIGHT if said == heard or not heard else MISWRITTEN
    return Cell(
        said_hanzi=said,
        said_pinyin=to_tone(pair.reference or ""),
        heard_hanzi=heard,
        heard_pinyin=to_tone(pair.hypothesis or ""),
        kind=kind if pair.is_correct else MISHEARD,
    )


def _hanzi(text: str, syllables: int, position: int | None) -> str:
    """The hanzi of a syllable; none where the text doesn't have one hanzi a syllable."""
    return text[position] if position is not None and len(text) == syllables else ""
