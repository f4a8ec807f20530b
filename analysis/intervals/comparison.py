"""Two systems' aligned outputs for the same utterances in; which is better and how surely, out.

The matched-pairs sentence-segment test is MAPSSWE: Gillick and Cox, "Some statistical issues in the
comparison of speech recognition algorithms", ICASSP 1989; as NIST made it: Pallett, Fisher and Fiscus, "Tools
for the analysis of benchmark speech recognition tests", ICASSP 1990. Errors of neighbouring words depend on
each other, so utterances are cut into segments where both systems get two tokens in a row right, and the
segments' numbers of errors are compared pair by pair.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.errors.align_all import AlignedToken, AlignedUtterance
from analysis.inputs.utterance_results import SYLLABLES, as_text, resampled_by, tokens_of
from analysis.intervals.bootstrap import difference_interval
from utils.errors import CorpusError
from utils.metrics import total

RIGHT_BETWEEN = 2  # tokens that both systems have right separate two segments
CHANGES_KEPT = 50


@dataclass(frozen=True)
class MatchedPairs:
    """What the test says.

    Attributes:
        segments: with an error of either system.
        mean: errors that the second system has more than the first, a segment.
        deviation: standard deviation of these differences.
        statistic: mean / (deviation / √segments), standard normal if the systems are equally good; None where
            all segments differ by the same number, so that there is no deviation to hold it against.
        p_value: two-sided: how probable a statistic as far from 0 is then. Without a statistic it is the sign
            test's: 1 if no segment differs, else 2 · 0.5 ^ segments.
    """

    segments: int
    mean: float
    deviation: float
    statistic: float | None
    p_value: float


@dataclass(frozen=True)
class Change:
    """An utterance that one system does better than the other: errors of both, and what both wrote."""

    id: str
    errors: tuple[int, int]
    reference: str
    hypotheses: tuple[str, str]


@dataclass(frozen=True)
class Comparison:
    """The second system against the first, on one level.

    Attributes:
        level: ``syllables`` or ``hanzi``.
        systems: names of the two.
        rates: of the two.
        difference: second minus first; below 0 the second is better.
        low, high, unit: 95 % confidence interval of the difference, and what was resampled.
        matched_pairs: the test.
        utterances: how many are ``better``, ``worse`` and ``equal`` with the second.
        tokens: how many reference tokens ``both`` have right, only the ``first``, ``second``, ``neither``.
        kinds: count of each kind of error of the two.
        better, worse: the utterances that gained and lost most.
    """

    level: str
    systems: tuple[str, str]
    rates: tuple[float, float]
    difference: float
    low: float
    high: float
    unit: str
    matched_pairs: MatchedPairs
    utterances: dict[str, int]
    tokens: dict[str, int]
    kinds: dict[str, tuple[int, int]]
    better: tuple[Change, ...]
    worse: tuple[Change, ...]


def compare(
    one: Sequence[AlignedUtterance],
    other: Sequence[AlignedUtterance],
    level: str,
    systems: tuple[str, str],
    samples: int = 1000,
) -> Comparison:
    """Compare two systems.

    Args:
        one, other: the same utterances in the same order.
        level: ``syllables`` or ``hanzi``.
        systems: what the two are called.
        samples: resampled sets of the interval.

    Raises:
        CorpusError: the utterances or their references differ.
    """
    for a, b in zip(one, other, strict=True):
        if (a.utterance.id, tokens_of(a.utterance, level)[0]) != (
            b.utterance.id,
            tokens_of(b.utterance, level)[0],
        ):
            what = f"two systems tested on different references: {a.utterance.id}, {b.utterance.id}"
            raise CorpusError(what, hint="test both on the same list")
    counts = [each.counts(level) for each in one], [each.counts(level) for each in other]
    utterances = [each.utterance for each in one]
    group_of, unit = resampled_by([*utterances, *(each.utterance for each in other)])
    interval = difference_interval(*counts, list(map(group_of, utterances)), unit, samples=samples)
    rates = total(counts[0]).rate, total(counts[1]).rate
    gains = [a.errors - b.errors for a, b in zip(*counts, strict=True)]
    pairs = list(zip(one, other, strict=True))
    kinds = [Counter(p.kind for each in side for p in each.tokens(level) if p.kind) for side in (one, other)]
    changes = [_change(a, b, level, gain) for (a, b), gain in zip(pairs, gains, strict=True) if gain]
    changes.sort(key=lambda change: (change.errors[1] - change.errors[0], change.id))
    return Comparison(
        level=level,
        systems=systems,
        rates=rates,
        difference=rates[1] - rates[0],
        low=interval.low,
        high=interval.high,
        unit=interval.unit,
        matched_pairs=matched_pairs_test(
            [segment for a, b in pairs for segment in error_segments(a.tokens(level), b.tokens(level))]
        ),
        utterances={
            "better": sum(gain > 0 for gain in gains),
            "worse": sum(gain < 0 for gain in gains),
            "equal": gains.count(0),
        },
        tokens=_right_tokens(pairs, level),
        kinds={kind: (kinds[0][kind], kinds[1][kind]) for kind in sorted(kinds[0] | kinds[1])},
        better=tuple(change for change in changes if change.errors[1] < change.errors[0])[:CHANGES_KEPT],
        worse=tuple(change for change in changes[::-1] if change.errors[1] > change.errors[0])[:CHANGES_KEPT],
    )


def error_segments(one: Sequence[AlignedToken], other: Sequence[AlignedToken]) -> list[tuple[int, int]]:
    """(errors of one, errors of the other) in each segment of an utterance that has any.

    A segment ends where both have two tokens in a row right and none inserted between them; the utterance's
    ends are segments' ends too.

    Args:
        one, other: alignments of the same reference.
    """
    errors = _errors_by_token(one), _errors_by_token(other)
    segments, current, right = [], [0, 0], RIGHT_BETWEEN
    for inserted, wrong in zip(zip(*errors[0], strict=True), zip(*errors[1], strict=True), strict=True):
        # Before each token what is inserted there, then the token itself; after the last, only the former.
        before, at = (inserted[0], wrong[0]), (inserted[1], wrong[1])
        for a, b in (before, at):
            if a or b:
                if right >= RIGHT_BETWEEN and any(current):
                    segments.append((current[0], current[1]))
                    current = [0, 0]
                current = [current[0] + a, current[1] + b]
                right = 0
        right += not any(at)
    return [*segments, (current[0], current[1])] if any(current) else segments


def matched_pairs_test(segments: Sequence[tuple[int, int]]) -> MatchedPairs:
    """The test on the (errors of one, errors of the other) of each segment; see :class:`MatchedPairs`.

    With few segments (say, 30) the normal distribution is only a rough guide.
    """
    differences = np.array([b - a for a, b in segments], dtype=np.float64)
    count = len(differences)
    mean = float(differences.mean()) if count else 0.0
    deviation = float(differences.std(ddof=1)) if count > 1 else 0.0
    if deviation == 0:
        return MatchedPairs(count, mean, 0.0, None, 2.0 * 0.5**count if mean else 1.0)
    statistic = mean / (deviation / math.sqrt(count))
    return MatchedPairs(count, mean, deviation, statistic, math.erfc(abs(statistic) / math.sqrt(2)))


def _errors_by_token(places: Sequence[AlignedToken]) -> tuple[list[int], list[int]]:
    """Insertions before each reference token and after the last; whether the token is wrong (0 after it)."""
    inserted, wrong = [0], []
    for place in places:
        if place.pair.reference is None:
            inserted[-1] += 1
        else:
            wrong.append(int(not place.pair.right))
            inserted.append(0)
    return inserted, [*wrong, 0]


def _right_tokens(pairs: Sequence[tuple[AlignedUtterance, AlignedUtterance]], level: str) -> dict[str, int]:
    counts: Counter[tuple[bool, bool]] = Counter()
    for one, other in pairs:
        wrong = (_errors_by_token(one.tokens(level))[1][:-1], _errors_by_token(other.tokens(level))[1][:-1])
        counts.update((not a, not b) for a, b in zip(*wrong, strict=True))
    return {
        "both": counts[True, True],
        "first": counts[True, False],
        "second": counts[False, True],
        "neither": counts[False, False],
    }


def _change(one: AlignedUtterance, other: AlignedUtterance, level: str, gain: int) -> Change:
    errors = one.counts(level).errors
    reference, first = tokens_of(one.utterance, level)
    second = tokens_of(other.utterance, level)[1]
    write = " ".join if level == SYLLABLES else as_text
    return Change(one.utterance.id, (errors, errors - gain), write(reference), (write(first), write(second)))
