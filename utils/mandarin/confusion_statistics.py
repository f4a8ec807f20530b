"""Aligned syllables in; statistics of what an acoustic model mistakes, as a file and as probabilities, out.

Shipped are the statistics of our own acoustic models (``pinyin_noise.tsv``, whose head says how they were
counted). :mod:`utils.mandarin.pinyin_noise` makes pinyin wrong by them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from utils.errors import CorpusError
from utils.files import write_text
from utils.mandarin.pinyin import full_inventory, is_syllable, normalise_syllable
from utils.mandarin.substitutions import (
    CHANGES,
    PARTS,
    PartCounts,
    changed_parts,
    split_parts,
    substitution_matrix,
)

STATISTICS = Path(__file__).with_name("pinyin_noise.tsv")
DELETION, INSERTION = "deletion", "insertion"

# Rows of the file: what is counted, said, heard, count.
SYLLABLES, CHANGED, FREQUENCY = "syllables", "changed", "frequency"
COLUMNS = ("what", "said", "heard", "count")
NOTHING, ZERO_INITIAL = "-", "∅"


@dataclass(frozen=True)
class PinyinNoise:
    """How an acoustic model mistakes syllables.

    Attributes:
        syllables: how many of the reference were looked at.
        deletions, insertions: among them.
        changes: substitutions, by the parts that they change (:data:`utils.mandarin.substitutions.CHANGES`).
        parts: by ``initial``, ``final``, ``tone``: how often (said, heard), where they differ.
        frequencies: how often texts like those that the model learnt from have each syllable.
    """

    syllables: int
    deletions: int
    insertions: int
    changes: Mapping[str, int]
    parts: Mapping[str, PartCounts]
    frequencies: Mapping[str, int]

    @classmethod
    def counted(
        cls, pairs: Iterable[tuple[str | None, str | None]], texts: Iterable[str] = ()
    ) -> PinyinNoise:
        """Count aligned pairs of (said, heard); None on one side is an insertion or a deletion.

        Args:
            pairs: of whole alignments, right ones included. What is no syllable on either side is left out.
            texts: syllables that tell the frequencies, beside those of the reference.

        Raises:
            CorpusError: no pair has a reference, or none is wrong.
        """
        alone, changes, frequencies = Counter[str](), Counter[str](), Counter(texts)
        parts = {part: Counter[tuple[str, str]]() for part in PARTS}
        for said, heard in pairs:
            if not all(one is None or is_syllable(one) for one in (said, heard)):
                continue
            if said is not None:
                frequencies[said] += 1
                alone[SYLLABLES] += 1
            if said is None or heard is None:
                alone[INSERTION if said is None else DELETION] += 1
            elif said != heard:
                changes[changed_parts(said, heard)] += 1
                for part, one, other in zip(PARTS, split_parts(said), split_parts(heard), strict=True):
                    parts[part][one, other] += one != other
        found = cls(
            syllables=alone[SYLLABLES],
            deletions=alone[DELETION],
            insertions=alone[INSERTION],
            changes=dict(changes),
            parts={part: {pair: n for pair, n in counts.items() if n} for part, counts in parts.items()},
            frequencies=dict(frequencies),
        )
        if not found.syllables or not found.errors:
            what = f"{found.errors} errors among {found.syllables} syllables: nothing to count"
            raise CorpusError(what, hint="give recognised texts with some errors, and their references")
        return found

    @property
    def substitutions(self) -> int:
        """All substitutions."""
        return sum(self.changes.values())

    @property
    def errors(self) -> int:
        """All errors."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def shares(self) -> dict[str, float]:
        """Of all errors, the share of each set of changed parts, of deletions and of insertions."""
        counts = {name: self.changes.get(name, 0) for name in CHANGES}
        counts |= {DELETION: self.deletions, INSERTION: self.insertions}
        return {name: count / self.errors for name, count in counts.items()}

    def save(self, path: str | Path, notes: Sequence[str] = ()) -> None:
        """Write the counts as a table, with these lines of comment at its head."""
        rows: list[tuple[object, ...]] = [
            (SYLLABLES, NOTHING, NOTHING, self.syllables),
            (DELETION, NOTHING, NOTHING, self.deletions),
            (INSERTION, NOTHING, NOTHING, self.insertions),
        ]
        rows += [(CHANGED, name, NOTHING, self.changes[name]) for name in CHANGES if name in self.changes]
        for part in PARTS:
            ordered = sorted(self.parts[part].items(), key=lambda item: (-item[1], item[0]))
            rows += [(part, said or ZERO_INITIAL, heard or ZERO_INITIAL, n) for (said, heard), n in ordered]
        rows += [(FREQUENCY, one, NOTHING, count) for one, count in sorted(self.frequencies.items())]
        head = [f"# {note}" for note in (*notes, " ".join(COLUMNS))]
        write_text(path, "\n".join([*head, *("\t".join(map(str, row)) for row in rows)]) + "\n")

    @classmethod
    def load(cls, path: str | Path = STATISTICS) -> PinyinNoise:
        """Read what :meth:`save` wrote; without a path, the shipped statistics.

        Raises:
            CorpusError: a line is none of ours.
        """
        alone = {SYLLABLES: 0, DELETION: 0, INSERTION: 0}
        tables: dict[str, dict] = {name: {} for name in (CHANGED, FREQUENCY, *PARTS)}
        for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), start=1):
            if line.startswith("#"):
                continue
            fields = line.split("\t")
            if len(fields) != len(COLUMNS) or not (fields[0] in alone or fields[0] in tables):
                raise _damaged(path, number, line)
            what, said, heard, count = fields
            if not count.isdecimal() or (what == CHANGED and said not in CHANGES):
                raise _damaged(path, number, line)
            if what in PARTS:
                tables[what][_part(said), _part(heard)] = int(count)
            elif what in tables:
                tables[what][said] = int(count)
            else:
                alone[what] = int(count)
        return cls(
            syllables=alone[SYLLABLES],
            deletions=alone[DELETION],
            insertions=alone[INSERTION],
            changes=tables[CHANGED],
            parts={part: tables[part] for part in PARTS},
            frequencies=tables[FREQUENCY],
        )

    @cached_property
    def cumulated(self) -> np.ndarray:
        """P(heard | said) summed up to each of the inventory, (said, heard) float32: to draw from."""
        return up_to_one(self.matrix(full_inventory())).astype(np.float32)

    def matrix(self, said: Sequence[str]) -> np.ndarray:
        """P(heard | said, another one is heard): (said, inventory) float32, rows sum to 1."""
        return substitution_matrix(self.changes, self.parts, self.frequencies, said)


@cache
def shipped_noise() -> PinyinNoise:
    """The shipped statistics, read once."""
    return PinyinNoise.load()


def up_to_one(shares: np.ndarray) -> np.ndarray:
    """Cumulate shares along the last axis; no rounding leaves the last one below 1."""
    sums = np.cumsum(shares, axis=-1, dtype=np.float64)
    return sums / sums[..., -1:]


def is_canonical(token: str) -> bool:
    """Whether a token is a syllable in canonical form."""
    return is_syllable(token) and normalise_syllable(token) == token


def _part(label: str) -> str:
    return "" if label == ZERO_INITIAL else label


def _damaged(path: str | Path, number: int, line: str) -> CorpusError:
    hint = f"lines are {' '.join(COLUMNS)}, separated by tabs; take the file from the repository again"
    return CorpusError(f"'{line}' is no count of ours", where=f"{path}:{number}", hint=hint)
