"""Defines the error rates of a test and computes them with their bootstrap confidence intervals.

Rates are those of syllables, of toneless syllables, of tones, of hanzi (CER) and of whole sentences; and the
rates of a pipeline with one perfect stage, or of a perfect choice from the n best (oracles).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from analysis.errors.align_all import AlignedUtterance
from analysis.inputs.utterance_results import (
    HANZI,
    SYLLABLES,
    UtteranceResult,
    as_tokens,
    resampled_by,
    tokens_of,
)
from analysis.intervals.bootstrap import rate_interval
from utils.metrics import (
    ErrorCounts,
    count_errors,
    count_sentence_errors,
    count_tone_errors,
    count_toneless_errors,
    total,
)

SYLLABLE_ERROR, HANZI_ERROR, SENTENCE_ERROR = "syllable_error_rate", "cer", "sentence_error_rate"
PERFECT_FIRST_STAGE, PERFECT_SECOND_STAGE = "stage one perfect", "stage two perfect"
BEST_OF_N_BEST = "best of the n best"


@dataclass(frozen=True)
class Rate:
    """An error rate with its interval.

    Attributes:
        key: name of the rate in the ``results.json`` of a test and in ``report.json``.
        name: name of the rate in tables and pages.
        level: ``syllables`` or ``hanzi``.
        counts: errors and reference tokens.
        rate: errors divided by reference tokens; None if no item was compared, such as no tone because no
            toneless syllable is correct.
        low, high, unit: 95 % confidence interval, None as for ``rate``, and what was resampled.
        has_edits: the errors are edits; else they are wrong items, all counted as substitutions.
    """

    key: str
    name: str
    level: str
    counts: ErrorCounts
    rate: float | None
    low: float | None
    high: float | None
    unit: str
    has_edits: bool


@dataclass(frozen=True)
class RateDefinition:
    """How the errors of a rate are counted in one utterance; attributes as in :class:`Rate`."""

    key: str
    name: str
    level: str
    count: Callable[[UtteranceResult], ErrorCounts]
    has_edits: bool = True


RATES = (
    RateDefinition(
        SYLLABLE_ERROR, "syllable error", SYLLABLES, lambda each: count_errors(*tokens_of(each, SYLLABLES))
    ),
    RateDefinition(
        "toneless_syllable_error_rate",
        "toneless syllable error",
        SYLLABLES,
        lambda each: count_toneless_errors(*tokens_of(each, SYLLABLES)),
    ),
    RateDefinition(
        "tone_error_rate",
        "tone error",
        SYLLABLES,
        lambda each: count_tone_errors(*tokens_of(each, SYLLABLES)),
        has_edits=False,
    ),
    RateDefinition(HANZI_ERROR, "hanzi error", HANZI, lambda each: count_errors(*tokens_of(each, HANZI))),
)


def rates_of_levels(levels: Sequence[str]) -> list[RateDefinition]:
    """The rates of a test on these levels; a sentence is wrong if it has an error on the last level."""
    last = levels[-1]
    sentence_error = RateDefinition(
        SENTENCE_ERROR,
        "sentence error",
        last,
        lambda each: count_sentence_errors(*tokens_of(each, last)),
        has_edits=False,
    )
    return [*(definition for definition in RATES if definition.level in levels), sentence_error]


def compute_rate(definition: RateDefinition, utterances: Sequence[UtteranceResult]) -> Rate:
    """A rate over all utterances with its confidence interval."""
    counts = [definition.count(utterance) for utterance in utterances]
    everything = total(counts)
    group_of, unit = resampled_by(utterances)
    interval = rate_interval(counts, list(map(group_of, utterances)), unit)
    is_defined = definition.has_edits or everything.reference > 0
    return Rate(
        key=definition.key,
        name=definition.name,
        level=definition.level,
        counts=everything,
        rate=everything.rate if is_defined else None,
        low=interval.low if is_defined else None,
        high=interval.high if is_defined else None,
        unit=interval.unit,
        has_edits=definition.has_edits,
    )


@dataclass(frozen=True)
class Oracle:
    """An error rate under an assumption.

    Attributes:
        name: the assumption, such as "stage one perfect" (every syllable recognised correctly).
        level: ``syllables`` or ``hanzi``.
        counts: edits and reference tokens.
        rate: edits per reference token.
        note: how the errors were counted.
    """

    name: str
    level: str
    counts: ErrorCounts
    rate: float
    note: str


def find_oracles(aligned: Sequence[AlignedUtterance], levels: Sequence[str]) -> list[Oracle]:
    """All oracle rates that can be computed: some need a gold pass, some several alternatives."""
    utterances = [each.utterance for each in aligned]
    oracles = []
    if HANZI in levels and SYLLABLES in levels:
        if has_gold_pass(utterances):
            counts = total(
                count_errors(tokens_of(each, HANZI)[0], as_tokens(each.gold_hanzi)) for each in utterances
            )
            note = "the hanzi that the second stage makes of the reference syllables"
            oracles.append(_oracle(PERFECT_FIRST_STAGE, HANZI, counts, note))
        counts = total(each.counts(SYLLABLES) for each in aligned)
        note = "every correct syllable becomes the correct hanzi, every wrong syllable a wrong one"
        oracles.append(_oracle(PERFECT_SECOND_STAGE, HANZI, counts, note))
    alternatives = max((len(utterance.n_best) for utterance in utterances), default=0)
    if alternatives > 1:
        with_hanzi = any(utterance.n_best[0].hanzi for utterance in utterances if utterance.n_best)
        note = f"of up to {alternatives} alternatives always the one with the fewest errors"
        for level in levels:
            if level == SYLLABLES or with_hanzi:
                counts = total(_fewest_errors(each, level) for each in aligned)
                oracles.append(_oracle(BEST_OF_N_BEST, level, counts, note))
    return oracles


def has_gold_pass(utterances: Sequence[UtteranceResult]) -> bool:
    """Whether the second stage has also converted the reference syllables of all utterances."""
    return all(utterance.gold_hanzi or not utterance.reference_hanzi for utterance in utterances)


def _oracle(name: str, level: str, counts: ErrorCounts, note: str) -> Oracle:
    return Oracle(name, level, counts, counts.rate, note)


def _fewest_errors(aligned: AlignedUtterance, level: str) -> ErrorCounts:
    reference, _ = tokens_of(aligned.utterance, level)
    alternatives = [
        alternative.pinyin if level == SYLLABLES else as_tokens(alternative.hanzi)
        for alternative in aligned.utterance.n_best
    ]
    counts = [aligned.counts(level), *(count_errors(reference, tokens) for tokens in alternatives)]
    return min(counts, key=lambda each: each.errors)
