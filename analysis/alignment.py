"""Reference and hypothesis token sequences in, aligned pairs of tokens out.

Among all alignments with the fewest edits (so that totals are those of any Levenshtein scorer), it is the one
whose pairs sound most alike: an alignment's cost is (edits, sum of distances), compared in this order. Where
that is still equal, a pair is preferred to a deletion and a deletion to an insertion, from the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pypinyin import Style, pinyin

from utils.pinyin import is_syllable, normalise_syllable, split_syllable

Distance = Callable[[str, str], int]
# A pair's distance is a whole number from 0 to 100. A token that stands alone costs less than a pair with
# nothing or only the tone in common, more than a pair that shares initial or final: "wo bu hao" heard as
# "wo hao ma" has lost bu and gained ma, rather than changed two syllables.
ALONE = 70
PAIR, DELETION, INSERTION = "pair", "deletion", "insertion"


@dataclass(frozen=True)
class Pair:
    """A reference token and what became of it, with their positions; the side that is missing is None.

    Without a hypothesis it is a deletion, without a reference an insertion.
    """

    reference: str | None
    hypothesis: str | None
    reference_position: int | None
    hypothesis_position: int | None

    @property
    def right(self) -> bool:
        """Both sides are there and equal."""
        return self.reference == self.hypothesis


def align(reference: Sequence[str], hypothesis: Sequence[str], distance: Distance) -> list[Pair]:
    """The best alignment: fewest edits, then smallest sum of distances.

    Args:
        reference, hypothesis: tokens.
        distance: of two different tokens, 0 to 100; see :func:`syllable_distance`, :func:`hanzi_distance`.
    """
    # Equal tokens at either end pair up in one of the best alignments: alone, a token costs the same wherever
    # it stands, so a pairing across can be exchanged for the straight one at no loss.
    start = _common_prefix(reference, hypothesis)
    end = _common_prefix(reference[start:][::-1], hypothesis[start:][::-1])
    inner = _moves(
        reference[start : len(reference) - end], hypothesis[start : len(hypothesis) - end], distance
    )
    pairs, i, j = [], 0, 0
    for move in [PAIR] * start + inner + [PAIR] * end:
        spoken = None if move == INSERTION else i
        heard = None if move == DELETION else j
        pairs.append(
            Pair(
                reference=None if spoken is None else reference[spoken],
                hypothesis=None if heard is None else hypothesis[heard],
                reference_position=spoken,
                hypothesis_position=heard,
            )
        )
        i, j = i + (move != INSERTION), j + (move != DELETION)
    return pairs


@lru_cache(maxsize=1_000_000)
def syllable_distance(one: str, other: str) -> int:
    """How different two syllables sound: 40 for the initial, 40 for the final, 20 for the tone."""
    a, b = split_syllable(one), split_syllable(other)
    return 40 * (a.initial != b.initial) + 40 * (a.final != b.final) + 20 * (a.tone != b.tone)


@lru_cache(maxsize=1_000_000)
def hanzi_distance(one: str, other: str) -> int:
    """How different two hanzi sound: the distance of their nearest readings; 100 for what is never read."""
    distances = [syllable_distance(a, b) if a != b else 0 for a in readings(one) for b in readings(other)]
    return min(distances, default=ALONE)


@lru_cache(maxsize=50_000)
def readings(hanzi: str) -> tuple[str, ...]:
    """All syllables that a character is read as, by pypinyin's dictionary; none for anything but hanzi."""
    found = pinyin(hanzi, style=Style.TONE3, heteronym=True, errors="ignore", neutral_tone_with_five=True)
    return (
        tuple(dict.fromkeys(normalise_syllable(one) for one in found[0] if is_syllable(one))) if found else ()
    )


def _common_prefix(one: Sequence[str], other: Sequence[str]) -> int:
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return length


def _moves(reference: Sequence[str], hypothesis: Sequence[str], distance: Distance) -> list[str]:
    """What to take at each step of the best alignment, by dynamic programming (Wagner and Fischer, 1974)."""
    # One edit outweighs all distances together: comparing sums is comparing (edits, distance).
    edit = 1 + ALONE * (len(reference) + len(hypothesis))
    row = [j * (edit + ALONE) for j in range(len(hypothesis) + 1)]
    table = [[INSERTION] * len(row)]
    for spoken in reference:
        above, row, moves = row, [row[0] + edit + ALONE], [DELETION]
        for j, heard in enumerate(hypothesis):
            pair = above[j] + (0 if spoken == heard else edit + distance(spoken, heard))
            deletion, insertion = above[j + 1] + edit + ALONE, row[j] + edit + ALONE
            best = min(pair, deletion, insertion)
            row.append(best)
            moves.append(PAIR if best == pair else DELETION if best == deletion else INSERTION)
        table.append(moves)
    return _trace(table)


def _trace(table: list[list[str]]) -> list[str]:
    """Moves from the start to the end, read from the last cell backwards."""
    i, j, path = len(table) - 1, len(table[0]) - 1, []
    while i or j:
        move = table[i][j]
        path.append(move)
        i, j = i - (move != INSERTION), j - (move != DELETION)
    return path[::-1]
