"""Compares two systems on the same utterances: difference of their error rates, and its significance.

The difference has a bootstrap interval. Its significance is that of the matched-pairs sentence-segment word
error test (MAPSSWE) of Gillick and Cox, "Some statistical issues in the comparison of speech recognition
algorithms", ICASSP 1989, in the form of NIST: Pallett, Fisher and Fiscus, "Tools for the analysis of
benchmark speech recognition tests", ICASSP 1990. The errors of neighbouring words depend on each other.
Utterances are therefore cut into segments where both systems have two correct tokens in a row, and the
numbers of errors in the segments are compared pair by pair.
"""

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

FEW_SEGMENTS = 30
"""With fewer segments the normal distribution is a bad approximation: the p-value is exact instead."""
CORRECT_BETWEEN = 2  # tokens that are correct in both systems separate two segments
CHANGES_KEPT = 50  # utterances that are better, and as many that are worse


@dataclass(frozen=True)
class MatchedPairs:
    """The result of the matched-pairs test.

    Attributes:
        segments: number of segments with an error of either system.
        mean: errors of the second system minus errors of the first, per segment.
        deviation: standard deviation of these differences.
        statistic: mean / (deviation / √segments), which is standard normal for equally good systems; None if
            the deviation is 0, because all segments differ by the same number.
        p_value: two-sided probability of a statistic at least as far from 0, for equally good systems. With
            fewer than :data:`FEW_SEGMENTS` segments, or without a statistic, that of a mean at least as far
            from 0 if the sign of each difference is random (Fisher's exact test of randomisation: Fisher,
            "The Design of Experiments", 1935, section 21).
        exact: whether the p-value is that of the test of randomisation.
    """

    segments: int
    mean: float
    deviation: float
    statistic: float | None
    p_value: float
    exact: bool


@dataclass(frozen=True)
class Change:
    """An utterance with different numbers of errors: the errors and the outputs of both systems."""

    id: str
    errors: tuple[int, int]
    reference: str
    hypotheses: tuple[str, str]


@dataclass(frozen=True)
class Comparison:
    """The second system against the first, on one level.

    Attributes:
        level: ``syllables`` or ``hanzi``.
        systems: names of the two systems.
        rates: error rates of the two systems.
        difference: second minus first; below 0 the second is better.
        low, high, unit: 95 % confidence interval of the difference, and what was resampled.
        matched_pairs: result of the matched-pairs test.
        utterances: number of utterances that are ``better``, ``worse`` and ``equal`` with the second.
        tokens: number of reference tokens that are correct in ``both``, only in the ``first`` or ``second``,
            or in ``neither``.
        kinds: count of each kind of error in the two systems.
        better, worse: the utterances with the largest changes.
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
    first: Sequence[AlignedUtterance],
    second: Sequence[AlignedUtterance],
    level: str,
    systems: tuple[str, str],
) -> Comparison:
    """Compare two systems.

    Args:
        first, second: outputs for the same utterances in the same order.
        level: ``syllables`` or ``hanzi``.
        systems: names of the two.

    Raises:
        CorpusError: the utterances or their references differ.
    """
    for a, b in zip(first, second, strict=True):
        if (a.utterance.id, tokens_of(a.utterance, level)[0]) != (
            b.utterance.id,
            tokens_of(b.utterance, level)[0],
        ):
            raise CorpusError(
                f"two systems tested on different references: {a.utterance.id}, {b.utterance.id}",
                hint="test both on the same list",
            )
    counts = [each.counts(level) for each in first], [each.counts(level) for each in second]
    utterances = [each.utterance for each in first]
    group_of, unit = resampled_by([*utterances, *(each.utterance for each in second)])
    interval = difference_interval(*counts, list(map(group_of, utterances)), unit)
    rates = total(counts[0]).rate, total(counts[1]).rate
    gains = [a.errors - b.errors for a, b in zip(*counts, strict=True)]
    pairs = list(zip(first, second, strict=True))
    kinds = [
        Counter(p.kind for each in side for p in each.tokens(level) if p.kind) for side in (first, second)
    ]
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
        tokens=_correct_tokens(pairs, level),
        kinds={kind: (kinds[0][kind], kinds[1][kind]) for kind in sorted(kinds[0] | kinds[1])},
        better=tuple(change for change in changes if change.errors[1] < change.errors[0])[:CHANGES_KEPT],
        worse=tuple(change for change in changes[::-1] if change.errors[1] > change.errors[0])[:CHANGES_KEPT],
    )


def error_segments(first: Sequence[AlignedToken], second: Sequence[AlignedToken]) -> list[tuple[int, int]]:
    """(errors of the first, errors of the second) in each segment of an utterance that has errors.

    A segment ends where both systems have two correct tokens in a row without an insertion between them, and
    at the ends of the utterance.

    Args:
        first, second: alignments of the same reference.
    """
    errors = _errors_by_token(first), _errors_by_token(second)
    segments, current, correct = [], [0, 0], CORRECT_BETWEEN
    for inserted, wrong in zip(zip(*errors[0], strict=True), zip(*errors[1], strict=True), strict=True):
        # First the insertions before each token, then the token; after the last token, only insertions.
        before, at = (inserted[0], wrong[0]), (inserted[1], wrong[1])
        for a, b in (before, at):
            if a or b:
                if correct >= CORRECT_BETWEEN and any(current):
                    segments.append((current[0], current[1]))
                    current = [0, 0]
                current = [current[0] + a, current[1] + b]
                correct = 0
        correct += not any(at)
    return [*segments, (current[0], current[1])] if any(current) else segments


def matched_pairs_test(segments: Sequence[tuple[int, int]]) -> MatchedPairs:
    """The test on the (errors of the first, errors of the second) of each segment."""
    differences = np.array([b - a for a, b in segments], dtype=np.int64)
    count = len(differences)
    mean = float(differences.mean()) if count else 0.0
    deviation = float(differences.std(ddof=1)) if count > 1 else 0.0
    statistic = mean / (deviation / math.sqrt(count)) if deviation else None
    if statistic is None or count < FEW_SEGMENTS:
        return MatchedPairs(
            count, mean, deviation, statistic, _randomisation_p_value(differences), exact=True
        )
    return MatchedPairs(
        count, mean, deviation, statistic, math.erfc(abs(statistic) / math.sqrt(2)), exact=False
    )


def _randomisation_p_value(differences: np.ndarray) -> float:
    """Probability that the differences (n,) int64 with random signs have a sum at least as far from 0."""
    sizes = np.abs(differences)
    # Of each sum of the sizes with a positive sign, its probability: they are added one after the other.
    probabilities = np.zeros(sizes.sum() + 1)
    probabilities[0] = 1.0
    for size in sizes[sizes > 0]:
        positive = np.zeros_like(probabilities)
        positive[size:] = probabilities[:-size]
        probabilities = (probabilities + positive) / 2
    sums = 2 * np.arange(len(probabilities)) - sizes.sum()
    return float(probabilities[np.abs(sums) >= abs(differences.sum())].sum())


def _errors_by_token(tokens: Sequence[AlignedToken]) -> tuple[list[int], list[int]]:
    """Insertions before each reference token and at the end; whether each token is wrong, and a last 0."""
    inserted, wrong = [0], []
    for token in tokens:
        if token.pair.reference is None:
            inserted[-1] += 1
        else:
            wrong.append(int(not token.pair.is_correct))
            inserted.append(0)
    return inserted, [*wrong, 0]


def _correct_tokens(pairs: Sequence[tuple[AlignedUtterance, AlignedUtterance]], level: str) -> dict[str, int]:
    counts: Counter[tuple[bool, bool]] = Counter()
    for first, second in pairs:
        wrong = [_errors_by_token(each.tokens(level))[1][:-1] for each in (first, second)]
        counts.update((not a, not b) for a, b in zip(*wrong, strict=True))
    return {
        "both": counts[True, True],
        "first": counts[True, False],
        "second": counts[False, True],
        "neither": counts[False, False],
    }


def _change(first: AlignedUtterance, second: AlignedUtterance, level: str, gain: int) -> Change:
    errors = first.counts(level).errors
    reference, output = tokens_of(first.utterance, level)
    other = tokens_of(second.utterance, level)[1]
    write = " ".join if level == SYLLABLES else as_text
    outputs = (write(output), write(other))
    return Change(first.utterance.id, (errors, errors - gain), write(reference), outputs)
