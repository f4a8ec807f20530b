"""AlignedUtterance utterances in; how good the pipeline would be if one of its parts were perfect, out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.errors.align_all import AlignedUtterance
from analysis.inputs.utterance_results import HANZI, SYLLABLES, UtteranceResult, as_tokens, tokens_of
from utils.metrics import ErrorCounts, count_errors, total


@dataclass(frozen=True)
class Oracle:
    """An error rate that would be reached if …

    Attributes:
        name: what is perfect.
        level: ``syllables`` or ``hanzi``.
        counts: edits and reference tokens.
        rate: their ratio.
        note: what exactly was counted.
    """

    name: str
    level: str
    counts: ErrorCounts
    rate: float
    note: str


def find_oracles(aligned: Sequence[AlignedUtterance], levels: Sequence[str]) -> list[Oracle]:
    """All of them that can be told: the second pass was made, more than one reading was asked for."""
    utterances = [one.utterance for one in aligned]
    found = []
    if HANZI in levels and SYLLABLES in levels:
        if all(one.gold_hanzi or not one.reference_hanzi for one in utterances):
            counts = gold_counts(utterances)
            note = "hanzi that the second stage makes of the true syllables"
            found.append(("stage one perfect", HANZI, counts, note))
        counts = total(one.counts(SYLLABLES) for one in aligned)
        note = "every syllable heard right becomes the right hanzi, every other one a wrong one"
        found.append(("stage two perfect", HANZI, counts, note))
    readings = max((len(one.n_best) for one in utterances), default=0)
    for level in levels:
        if readings > 1 and (
            level == SYLLABLES or any(one.n_best[0].hanzi for one in utterances if one.n_best)
        ):
            counts = total(_best_reading(one, level) for one in aligned)
            note = f"of up to {readings} readings always the one with the fewest errors"
            found.append(("best of the n best", level, counts, note))
    return [Oracle(name, level, counts, counts.rate, note) for name, level, counts, note in found]


def gold_counts(utterances: Sequence[UtteranceResult]) -> ErrorCounts:
    """Errors of what the second stage makes of the true syllables: a perfect first stage."""
    return total(count_errors(tokens_of(one, HANZI)[0], as_tokens(one.gold_hanzi)) for one in utterances)


def _best_reading(one: AlignedUtterance, level: str) -> ErrorCounts:
    reference, _ = tokens_of(one.utterance, level)
    readings = [
        reading.pinyin if level == SYLLABLES else as_tokens(reading.hanzi) for reading in one.utterance.n_best
    ]
    tried = [count_errors(reference, reading) for reading in readings]
    return min([one.counts(level), *tried], key=lambda counts: counts.errors)
