"""Reads ``hypotheses.tsv`` and chooses example sentences for the demo's page, aligned syllable by syllable.

Chosen are the longest correct sentences, the worst ones, and a random sample of the other wrong ones.
"""

import csv
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pypinyin.contrib.tone_convert import to_tone

from analysis.errors.alignment import Pair, align
from utils.errors import CorpusError
from utils.mandarin.syllable_distance import syllable_distance

CORRECT, WRONG_SYLLABLE, WRONG_HANZI = "correct", "wrong-syllable", "wrong-hanzi"
TEXTS = ("id", "reference_pinyin", "pinyin", "reference_hanzi", "hanzi")
COLUMNS = (*TEXTS, "syllable_errors", "hanzi_errors")


@dataclass(frozen=True)
class Sentence:
    """One row of ``hypotheses.tsv``; the hanzi are empty without a second stage (syllables to hanzi).

    ``errors`` counts wrong hanzi, or wrong syllables if there are no hanzi.
    """

    id: str
    reference_pinyin: tuple[str, ...]
    pinyin: tuple[str, ...]
    reference_hanzi: str
    hanzi: str
    errors: int


@dataclass(frozen=True)
class Cell:
    """Two aligned syllables with their hanzi; ``""`` on the side of an insertion or deletion.

    Attributes:
        reference_hanzi, reference_pinyin: hanzi and syllable of the reference; pinyin has tone marks.
        hanzi, pinyin: hanzi and syllable of the output.
        kind: ``correct``, ``wrong-syllable`` (also inserted or deleted) or ``wrong-hanzi`` (of a correct
            syllable).
    """

    reference_hanzi: str
    reference_pinyin: str
    hanzi: str
    pinyin: str
    kind: str


@dataclass(frozen=True)
class Example:
    """A sentence as aligned cells."""

    id: str
    errors: int
    cells: tuple[Cell, ...]


def read_hypotheses(path: str | Path) -> list[Sentence]:
    """Read a ``hypotheses.tsv`` of ``test.py``; errors are hanzi errors if there are hanzi.

    Raises:
        CorpusError: the file or a column is missing.
    """
    path = Path(path)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            table = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            missing = [name for name in COLUMNS if name not in (table.fieldnames or ())]
            if missing:
                raise CorpusError(
                    f"no column {', '.join(missing)}",
                    where=path,
                    hint="test.py writes such a table: run it again",
                )
            return [_sentence(row) for row in table]
    except (OSError, UnicodeDecodeError, ValueError, TypeError, AttributeError) as error:
        raise CorpusError(f"not a table of hypotheses ({error})", where=path, hint="run test.py") from error


def choose_examples(
    sentences: Sequence[Sentence], right: int = 4, worst: int = 4, drawn: int = 6, seed: int = 0
) -> tuple[list[Sentence], list[Sentence], list[Sentence]]:
    """Choose the longest correct sentences, the worst ones, and a random sample of the other wrong ones.

    Args:
        sentences: a whole test set.
        right, worst, drawn: maximum number of each.
        seed: seed of the random sample.
    """
    correct = [sentence for sentence in sentences if not sentence.errors]
    wrong = [sentence for sentence in sentences if sentence.errors]
    correct.sort(key=lambda sentence: (-len(sentence.pinyin), sentence.id))
    wrong.sort(key=lambda sentence: (-sentence.errors / max(len(sentence.reference_pinyin), 1), sentence.id))
    others = wrong[worst:]
    sample = random.Random(seed).sample(others, min(drawn, len(others)))
    sample.sort(key=lambda sentence: (sentence.errors, sentence.id))
    return correct[:right], wrong[:worst], sample


def align_example(sentence: Sentence) -> Example:
    """Align the syllables of reference and output, each with its hanzi."""
    pairs = align(sentence.reference_pinyin, sentence.pinyin, syllable_distance)
    return Example(sentence.id, sentence.errors, tuple(_cell(pair, sentence) for pair in pairs))


def _sentence(row: dict[str, str]) -> Sentence:
    id, reference, output, reference_hanzi, hanzi = (row[column] for column in TEXTS)
    errors = int(row["hanzi_errors"] if reference_hanzi and hanzi else row["syllable_errors"])
    return Sentence(id, tuple(reference.split()), tuple(output.split()), reference_hanzi, hanzi, errors)


def _cell(pair: Pair, sentence: Sentence) -> Cell:
    reference = _hanzi(sentence.reference_hanzi, len(sentence.reference_pinyin), pair.reference_position)
    hanzi = _hanzi(sentence.hanzi, len(sentence.pinyin), pair.hypothesis_position)
    kind = CORRECT if reference == hanzi or not hanzi else WRONG_HANZI
    return Cell(
        reference_hanzi=reference,
        reference_pinyin=to_tone(pair.reference or ""),
        hanzi=hanzi,
        pinyin=to_tone(pair.hypothesis or ""),
        kind=kind if pair.is_correct else WRONG_SYLLABLE,
    )


def _hanzi(text: str, syllables: int, position: int | None) -> str:
    """The hanzi of a syllable; ``""`` if the text does not have one hanzi per syllable."""
    return text[position] if position is not None and len(text) == syllables else ""
