"""Aligns a reference with a hypothesis token sequence and returns the pairs of tokens.

Several alignments of two sequences may have the fewest edits. Of these, the one is chosen that
1. has as many substitutions, insertions and deletions as the standard scorer's (RapidFuzz, as in jiwer), so
   that the totals always equal the scorer's,
2. among those, has the smallest sum of distances over its substituted pairs: similar sounds are paired,
3. among those, prefers a pair to a deletion and a deletion to an insertion, from the end of the sequences.

The sound of tokens therefore only decides between alignments that the scorer considers equally good.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import Levenshtein

Distance = Callable[[str, str], int]
PAIR, DELETION, INSERTION = "pair", "deletion", "insertion"
# For one cell of the table: number of deletions so far → (smallest sum of distances, last move).
Costs = dict[int, tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Pair:
    """A reference token and the hypothesis token aligned with it, with their positions in the sequences.

    A deletion has no hypothesis and an insertion no reference: that side is None.
    """

    reference: str | None
    hypothesis: str | None
    reference_position: int | None
    hypothesis_position: int | None

    @property
    def is_correct(self) -> bool:
        """Whether both tokens exist and are equal."""
        return self.reference == self.hypothesis

    @property
    def is_substitution(self) -> bool:
        """Whether both tokens exist and differ."""
        return not (self.is_correct or self.reference is None or self.hypothesis is None)


def align(reference: Sequence[str], hypothesis: Sequence[str], distance: Distance) -> list[Pair]:
    """Align two token sequences; the module's docstring says which of the equally short alignments is taken.

    Args:
        reference, hypothesis: tokens.
        distance: distance of two different tokens, 0 to 100: ``syllable_distance`` or ``hanzi_distance``.
    """
    # Equal tokens at both ends are paired with each other. No alignment is better: pairing one of them with
    # another token needs at least as many edits and has at least as large a sum of distances.
    start = _common_prefix(reference, hypothesis)
    end = _common_prefix(reference[start:][::-1], hypothesis[start:][::-1])
    inner = _moves(
        reference[start : len(reference) - end], hypothesis[start : len(hypothesis) - end], distance
    )
    pairs, i, j = [], 0, 0
    for move in [PAIR] * start + inner + [PAIR] * end:
        row = None if move == INSERTION else i
        column = None if move == DELETION else j
        pairs.append(
            Pair(
                reference=None if row is None else reference[row],
                hypothesis=None if column is None else hypothesis[column],
                reference_position=row,
                hypothesis_position=column,
            )
        )
        i, j = i + (move != INSERTION), j + (move != DELETION)
    return pairs


def _common_prefix(first: Sequence[str], second: Sequence[str]) -> int:
    length = 0
    for a, b in zip(first, second, strict=False):
        if a != b:
            break
        length += 1
    return length


def _moves(reference: Sequence[str], hypothesis: Sequence[str], distance: Distance) -> list[str]:
    """The moves of the best alignment of two sequences that differ at both ends."""
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
        substituted = PAIR in steps[i, j] and reference[i - 1] != hypothesis[j - 1]
        pair_cost = distance(reference[i - 1], hypothesis[j - 1]) if substituted else 0
        costs[i, j] = _cheapest(costs, i, j, steps[i, j], pair_cost)
    return _trace(costs, len(reference), len(hypothesis), deletions)


def _steps(
    reference: Sequence[str], hypothesis: Sequence[str], fewest: int
) -> dict[tuple[int, int], list[str]]:
    """The cells that lie on an alignment with the fewest edits, each with the moves that lead to it."""
    edits, shift = _edit_table(reference, hypothesis, fewest)
    steps: dict[tuple[int, int], list[str]] = {}
    waiting = [(len(reference), len(hypothesis))]
    while waiting:
        i, j = waiting.pop()
        if (i, j) in steps or not (i or j):
            continue
        steps[i, j] = moves = []
        cell = j - i + shift
        cost = edits[i][cell]
        if i and j and cost == edits[i - 1][cell] + (reference[i - 1] != hypothesis[j - 1]):
            moves.append(PAIR)
            waiting.append((i - 1, j - 1))
        if i and cost == edits[i - 1][cell + 1] + 1:
            moves.append(DELETION)
            waiting.append((i - 1, j))
        if j and cost == edits[i][cell - 1] + 1:
            moves.append(INSERTION)
            waiting.append((i, j - 1))
    return steps


def _edit_table(
    reference: Sequence[str], hypothesis: Sequence[str], fewest: int
) -> tuple[list[list[int]], int]:
    """The fewest edits between each pair of prefixes that lie in a band, so that memory grows with the edits.

    The algorithm is Wagner and Fischer's ("The String-to-String Correction Problem", 1974), within Ukkonen's
    band ("Algorithms for Approximate String Matching", 1985): an alignment with ``fewest`` edits has at most
    ``below`` deletions and ``above`` insertions.

    Returns:
        A row for each reference prefix, and ``shift``: the prefixes of i and j tokens have cell
        ``j - i + shift`` of row i. Cells at the ends of the band and outside the table hold ``fewest + 1``.
    """
    surplus = len(hypothesis) - len(reference)
    below, above = (fewest - surplus) // 2, (fewest + surplus) // 2
    outside, shift = fewest + 1, below + 1
    table = [[outside] * shift + list(range(above + 1)) + [outside]]
    for i, token in enumerate(reference, start=1):
        before, row = table[-1], [outside] * (below + above + 3)
        if i <= below:
            row[shift - i] = i
        for j in range(max(1, i - below), min(len(hypothesis), i + above) + 1):
            cell = j - i + shift
            best = before[cell] if token == hypothesis[j - 1] else before[cell] + 1
            if before[cell + 1] < best:
                best = before[cell + 1] + 1
            if row[cell - 1] < best:
                best = row[cell - 1] + 1
            row[cell] = best
        table.append(row)
    return table, shift


def _cheapest(
    costs: dict[tuple[int, int], Costs], i: int, j: int, moves: Sequence[str], pair_cost: int
) -> Costs:
    """The smallest sums of distances up to a cell; of equally good moves, the first of ``moves`` is kept."""
    cheapest: Costs = {}
    for move in moves:
        for deleted, (total, _) in costs[i - (move != INSERTION), j - (move != DELETION)].items():
            count, cost = deleted + (move == DELETION), total + (pair_cost if move == PAIR else 0)
            if count not in cheapest or cost < cheapest[count][0]:
                cheapest[count] = (cost, move)
    return cheapest


def _trace(costs: dict[tuple[int, int], Costs], i: int, j: int, deletions: int) -> list[str]:
    """The moves from the first to the last cell with this number of deletions, traced back from the last."""
    path = []
    while i or j:
        move = costs[i, j][deletions][1]
        path.append(move)
        i, j, deletions = i - (move != INSERTION), j - (move != DELETION), deletions - (move == DELETION)
    return path[::-1]
