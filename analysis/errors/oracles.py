"""Computes the error rates of a pipeline with one perfect stage, or a perfect choice from the n-best."""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.errors.align_all import AlignedUtterance
from analysis.inputs.utterance_results import HANZI, SYLLABLES, UtteranceResult, as_tokens, tokens_of
from utils.metrics import ErrorCounts, count_errors, total

PERFECT_FIRST_STAGE, PERFECT_SECOND_STAGE = "stage one perfect", "stage two perfect"
BEST_OF_N_BEST = "best of the n best"


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
