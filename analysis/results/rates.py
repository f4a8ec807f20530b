"""Defines the error rates of a test and computes them with their bootstrap confidence intervals.

Rates are those of syllables, of toneless syllables, of tones, of hanzi (CER) and of whole sentences.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from analysis.inputs.utterance_results import HANZI, SYLLABLES, UtteranceResult, resampled_by, tokens_of
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


def distinct_sentence_rates(utterances: Sequence[UtteranceResult]) -> dict[str, float]:
    """Hanzi rates over the distinct sentences, and their number: repetitions of a sentence count once."""
    distinct = {(each.reference_pinyin, each.reference_hanzi): each for each in utterances}.values()
    rates = {rate.key: total(map(rate.count, distinct)).rate for rate in rates_of_levels((HANZI,))}
    return {"utterances": len(distinct), **rates}
