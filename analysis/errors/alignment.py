"""Reference and hypothesis token sequences in, aligned pairs of tokens out.

The tie rule. Of all alignments of two sequences it is the one that

1. has the fewest edits,
2. splits them into substitutions, insertions and deletions as the standard scorer does (RapidFuzz's choice,
   which is jiwer's), so that these totals are always those of the scorer,
3. has the smallest sum of distances over its substituted pairs: what sounds alike is paired up,
4. where all that is equal, prefers a pair to a deletion and a deletion to an insertion, from the end.

How tokens sound therefore decides only between alignments that a scorer holds for equally good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import Levenshtein

Distance = Callable[[str, str], int]
PAIR, DELETION, INSERTION = "pair", "deletion", "insertion"
# Of a cell: how few distances sum up to there, by the number of deletions so far, and by which move.
Costs = dict[int, tuple[int, str]]


@dataclass(frozen=True, slots=True)
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

    @property
    def substituted(self) -> bool:
        """Both sides are there and differ."""
        return not (self.right or self.reference is None or self.hypothesis is None)


def align(reference: Sequence[str], hypothesis: Sequence[str], distance: Distance) -> list[Pair]:
    """The best alignment by the module's tie rule.

    Args:
        reference, hypothesis: tokens.
        distance: of two different tokens, 0 to 100: ``syllable_distance``, ``hanzi_distance``.
    """
    # Equal tokens at either end pair up in every alignment with the fewest edits, or in one that is as good:
    # a pairing across can be exchanged for the straight one, which changes neither edits nor distances.
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


def _common_prefix(one: Sequence[str], other: Sequence[str]) -> int:
    length = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        length += 1
    return length


def _moves(reference: Sequence[str], hypothesis: Sequence[str], distance: Distance) -> list[str]:
    """What to take at each step of the best alignment of two sequences that differ at both ends."""
    if not reference or not hypothesis:
        return [DELETION] * len(reference) + [INSERTION] * len(hypothesis)
    if len(reference) == len(hypothesis) == 1:
        return [PAIR]
    edits = [edit.tag for edit in Levenshtein.editops(reference, hypothesis)]
    deletions, insertions = edits.count("delete"), edits.count("insert")
    if not deletions and not insertions:
        return [PAIR] * len(reference)
    steps = _steps(reference, hypothesis, len(edits))
    costs: dict[tuple[int, int], Costs] = {(0, 0): {0: (0, PAIR)}}
    for i, j in sorted(steps):
        spoken, heard = reference[i - 1], hypothesis[j - 1]
        sound = distance(spoken, heard) if PAIR in steps[i, j] and spoken != heard else 0
        costs[i, j] = _cheapest(costs, i, j, steps[i, j], sound)
    return _trace(costs, len(reference), len(hypothesis), deletions)


def _steps(
    reference: Sequence[str], hypothesis: Sequence[str], fewest: int
) -> dict[tuple[int, int], list[str]]:
    """The cells of all alignments with the fewest edits, and the moves that lead to each in one of them."""
    edits = _edit_table(reference, hypothesis, fewest)
    steps: dict[tuple[int, int], list[str]] = {}
    waiting = [(len(reference), len(hypothesis))]
    while waiting:
        i, j = waiting.pop()
        if (i, j) in steps or not (i or j):
            continue
        steps[i, j] = moves = []
        if i and j and edits[i][j] == edits[i - 1][j - 1] + (reference[i - 1] != hypothesis[j - 1]):
            moves.append(PAIR)
            waiting.append((i - 1, j - 1))
        if i and edits[i][j] == edits[i - 1][j] + 1:
            moves.append(DELETION)
            waiting.append((i - 1, j))
        if j and edits[i][j] == edits[i][j - 1] + 1:
            moves.append(INSERTION)
            waiting.append((i, j - 1))
    return steps


def _edit_table(reference: Sequence[str], hypothesis: Sequence[str], fewest: int) -> list[list[int]]:
    """Fewest edits between all beginnings, rows for the reference, columns for the hypothesis.

    Wagner and Fischer ("The String-to-String Correction Problem", 1974), within the band that an alignment of
    ``fewest`` edits can't leave (Ukkonen, "Algorithms for Approximate String Matching", 1985): so many edits
    of which the lengths say how many more are insertions than deletions.
    """
    surplus = len(hypothesis) - len(reference)
    below, above = (fewest - surplus) // 2, (fewest + surplus) // 2  # most deletions, most insertions
    outside, width = fewest + 1, len(hypothesis) + 1
    table = [[j if j <= above else outside for j in range(width)]]
    for i, spoken in enumerate(reference, start=1):
        before, row = table[-1], [outside] * width
        last = outside
        if i <= below:
            row[0] = last = i
        for j in range(max(1, i - below), min(width, i + above + 1)):
            best = before[j - 1] if spoken == hypothesis[j - 1] else before[j - 1] + 1
            if before[j] < best:
                best = before[j] + 1
            if last < best:
                best = last + 1
            row[j] = last = best
        table.append(row)
    return table


def _cheapest(costs: dict[tuple[int, int], Costs], i: int, j: int, moves: Sequence[str], sound: int) -> Costs:
    """Least sums of distances up to a cell; of equal ones the move that comes first in ``moves`` is kept."""
    cheapest: Costs = {}
    for move in moves:
        before = costs[i - (move != INSERTION), j - (move != DELETION)]
        for deleted, (total, _) in before.items():
            count, cost = deleted + (move == DELETION), total + (sound if move == PAIR else 0)
            if count not in cheapest or cost < cheapest[count][0]:
                cheapest[count] = (cost, move)
    return cheapest


def _trace(costs: dict[tuple[int, int], Costs], i: int, j: int, deletions: int) -> list[str]:
    """Moves from the start to the end with so many deletions, read from the last cell backwards."""
    path = []
    while i or j:
        move = costs[i, j][deletions][1]
        path.append(move)
        i, j, deletions = i - (move != INSERTION), j - (move != DELETION), deletions - (move == DELETION)
    return path[::-1]
