"""The prepared pairs of one text on disk in; flat arrays, a model's ids and counts of readings out.

The arrays know no vocabulary: a syllable is its place in the full inventory, a hanzi its code point. Tables
map both to the ids of a model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from data.text.pinyin_pair_pieces import HANZI_LINE_END, SYLLABLE_LINE_END
from utils.errors import CorpusError
from utils.files import write_json
from utils.mandarin.pinyin import full_inventory
from utils.run_folder.checksum_files import check, record

_AT_ONCE = 1 << 22  # positions that are counted in one go


@dataclass(frozen=True)
class ReadingCounts:
    """How often hanzi are read as syllables.

    Attributes:
        syllables: (n,) uint16, place in the full inventory, from 0.
        hanzi: (n,) uint16, code points.
        counts: (n,) int64; the rows are sorted by syllable, then by hanzi.
    """

    syllables: np.ndarray
    hanzi: np.ndarray
    counts: np.ndarray

    def named(self) -> Iterator[tuple[str, str, int]]:
        """(syllable, hanzi, count) of each."""
        inventory = full_inventory()
        rows = zip(self.syllables.tolist(), self.hanzi.tolist(), self.counts.tolist(), strict=True)
        return ((inventory[place], chr(code), count) for place, code, count in rows)


@dataclass(frozen=True)
class PairPart:
    """The pairs of one text; its arrays are mapped from disk, not read.

    Attributes:
        stem: path of its files without their endings.
        source: name of the text.
        lines, hanzi: kept.
        rejected: reason → lines.
    """

    stem: Path
    source: str
    lines: int
    hanzi: int
    rejected: dict[str, int]

    def __len__(self) -> int:
        """Positions: hanzi and ends of lines."""
        return self.hanzi + self.lines

    @cached_property
    def syllables(self) -> np.ndarray:
        """(positions,) uint16: place in the full inventory + 1; ``SYLLABLE_LINE_END`` ends a line."""
        return self._mapped("syllables")

    @cached_property
    def characters(self) -> np.ndarray:
        """(positions,) uint16: code points; ``HANZI_LINE_END`` ends a line."""
        return self._mapped("hanzi")

    def encoded(
        self, syllable_ids: np.ndarray, hanzi_ids: np.ndarray, start: int = 0, stop: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """A model's ids of the positions ``start : stop``, two (positions,) of the tables' types.

        Args:
            syllable_ids: of :func:`syllable_table`.
            hanzi_ids: of :func:`hanzi_table`.
            start, stop: all positions, if not given.
        """
        return syllable_ids[self.syllables[start:stop]], hanzi_ids[self.characters[start:stop]]

    def count_readings(self) -> ReadingCounts:
        """How often each hanzi is read as each syllable."""
        return _summed([self._keys_and_counts(start) for start in range(0, len(self), _AT_ONCE)])

    def _keys_and_counts(self, start: int) -> tuple[np.ndarray, np.ndarray]:
        some = slice(start, start + _AT_ONCE)
        keys = self.syllables[some].astype(np.uint32) << np.uint32(16) | self.characters[some]
        return np.unique(keys[self.characters[some] != HANZI_LINE_END], return_counts=True)

    def _mapped(self, kind: str) -> np.ndarray:
        path = array_path(self.stem, kind)
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise _damaged(self.stem, path, str(error)) from error
        if array.shape != (len(self),) or array.dtype != np.uint16:
            raise _damaged(self.stem, path, f"{array.dtype} {array.shape} instead of uint16 ({len(self)},)")
        return array

    def save(self, facts: dict[str, Any]) -> None:
        """Write the counts beside the arrays, ``facts`` about the preparation, and the checksums of all."""
        counts = {name: value for name, value in asdict(self).items() if name != "stem"}
        write_json(counts_path(self.stem), counts | facts)
        record(checksums_path(self.stem), _files(self.stem))

    @classmethod
    def load(cls, stem: Path) -> PairPart:
        """Read the counts and compare all files with their checksums; arrays are opened when first asked for.

        Raises:
            CorpusError: the file is missing or damaged.
        """
        path = counts_path(stem)
        try:
            check(checksums_path(stem), _files(stem))
            saved = json.loads(path.read_text(encoding="utf-8"))
            return cls(stem, **{name: saved[name] for name in ("source", "lines", "hanzi", "rejected")})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _damaged(stem, path, str(error)) from error


def counts_path(stem: Path) -> Path:
    """Where the counts of a part are."""
    return stem.with_name(f"{stem.name}.json")


def checksums_path(stem: Path) -> Path:
    """Where the checksums of a part's files are; written last, so with it the part is complete."""
    return stem.with_name(f"{stem.name}.sha256")


def array_path(stem: Path, kind: str) -> Path:
    """Where an array of a part is, ``syllables`` or ``hanzi``."""
    return stem.with_name(f"{stem.name}.{kind}.npy")


def _files(stem: Path) -> list[Path]:
    return [counts_path(stem), array_path(stem, "syllables"), array_path(stem, "hanzi")]


def merged(counts: Sequence[ReadingCounts]) -> ReadingCounts:
    """Counts of several parts added up."""
    return _summed(
        [((c.syllables.astype(np.uint32) + 1) << np.uint32(16) | c.hanzi, c.counts) for c in counts]
    )


def syllable_table(ids: np.ndarray, end: int) -> np.ndarray:
    """Map from the syllables of a part to a model's ids, (inventory + 1,) int16, or int32 for many ids.

    Args:
        ids: the model's id of each syllable of ``utils.mandarin.pinyin.full_inventory()``.
        end: what the end of a line becomes.
    """
    table = np.insert(np.asarray(ids, np.int64), SYLLABLE_LINE_END, end)
    return table.astype(_narrowest(table))


def hanzi_table(tokens: Sequence[str], end: int, unknown: int) -> np.ndarray:
    """Map from the code points of a part to a model's ids, (65536,) int16, or int32 for many ids.

    Args:
        tokens: the model's vocabulary in the order of its ids; those longer than a character are no hanzi.
        end: what the end of a line becomes.
        unknown: what other hanzi become.
    """
    table = np.full(1 << 16, unknown, np.int64)
    for number, token in enumerate(tokens):
        if len(token) == 1 and token <= "\uffff":
            table[ord(token)] = number
    table[HANZI_LINE_END] = end
    return table.astype(_narrowest(table))


def _narrowest(table: np.ndarray) -> type[np.signedinteger]:
    return np.int16 if np.abs(table).max() <= np.iinfo(np.int16).max else np.int32


def _summed(found: Sequence[tuple[np.ndarray, np.ndarray]]) -> ReadingCounts:
    """Counts by (place + 1) << 16 | code point, each key once."""
    keys, which = np.unique(np.concatenate([some for some, _ in found]), return_inverse=True)
    counts = np.zeros(len(keys), np.int64)
    np.add.at(counts, which, np.concatenate([times for _, times in found]))
    places = (keys >> np.uint32(16)) - 1
    return ReadingCounts(places.astype(np.uint16), keys.astype(np.uint16), counts)


def _damaged(stem: Path, path: Path, what: str) -> CorpusError:
    return CorpusError(
        f"prepared pairs are missing or damaged ({what})",
        where=path,
        hint=f"delete {checksums_path(stem)}: the text is prepared again",
    )
