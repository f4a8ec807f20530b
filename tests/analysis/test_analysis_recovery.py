"""Error analysis finds injected errors: at least 99 % by kind, in total and by breakdown."""

from collections import Counter
from collections.abc import Callable

import pytest

from analysis.errors.align_all import align_all, all_tokens
from analysis.errors.attribution import ATTRIBUTIONS
from analysis.inputs.training_texts import Training
from analysis.inputs.utterance_results import HANZI, LEVELS, SYLLABLES, UtteranceResult
from analysis.results.breakdowns import (
    FREQUENCIES,
    LENGTHS,
    NOISES,
    SPEEDS,
    Breakdown,
    band,
    find_breakdowns,
)
from analysis.results.rates import find_oracles
from tests.support.injected_errors import INJECTORS, Change, gold_outcomes, inject

UTTERANCES = 900
MIN_RECOVERED = 0.99


@pytest.fixture(scope="module")
def tested():
    gold = gold_outcomes(UTTERANCES)
    outcomes, injected = inject(gold, list(INJECTORS), share=0.4)
    counts = Counter(syllable for outcome in gold for syllable in outcome.reference_pinyin)
    training = Training(syllables=counts, sentences={outcome.reference_hanzi for outcome in gold[::3]})
    return outcomes, injected, align_all(outcomes, LEVELS, training), training


def _kinds(changes, level: str) -> list[str]:
    found = (change.syllable_kind if level == SYLLABLES else change.hanzi_kind for change in changes)
    return [kind for kind in found if kind]


def _recovered(found: Counter, expected: Counter) -> float:
    """Fraction of the injected errors that was found, minus the errors found in excess."""
    wrong = sum(abs(found[key] - expected[key]) for key in {*found, *expected})
    return 1 - wrong / sum(expected.values())


@pytest.mark.parametrize("level", LEVELS)
def test_kinds_are_recovered(tested, level):
    _, injected, aligned, _ = tested
    expected = Counter(_kinds([change for changes in injected for _, change in changes], level))
    found = Counter(token.kind for token in all_tokens(aligned, level) if token.kind)
    assert min(expected.values()) >= 20, "too few to tell"
    for kind in expected:
        assert abs(found[kind] - expected[kind]) <= (1 - MIN_RECOVERED) * expected[kind], kind
    assert _recovered(found, expected) >= MIN_RECOVERED


def test_attribution_is_recovered(tested):
    _, injected, aligned, _ = tested
    expected = Counter(change.attribution for changes in injected for _, change in changes)
    found = Counter(token.attribution for token in all_tokens(aligned, HANZI) if token.attribution)
    for name in expected:
        assert abs(found[name] - expected[name]) <= (1 - MIN_RECOVERED) * expected[name], name
    assert set(found) <= set(ATTRIBUTIONS)


def _position(index: int, length: int) -> str:
    names = ["first", "second and third", "second and third"] + ["middle"] * length
    names[length - 3 : length] = ["third and second last"] * 2 + ["last"]
    return {0: "first", 1: "second and third", 2: "second and third"}.get(index, names[index])


Group = Callable[[UtteranceResult, int, Change, Training], str]


def _frequency(outcome: UtteranceResult, at: int, change: Change, training: Training) -> str:
    """Of the syllable before which another one is inserted, or of the reference's."""
    spoken = change.pinyin[1] if len(change.pinyin) == 2 else outcome.reference_pinyin[at]
    return band(training.syllables[spoken], FREQUENCIES, "times")


def _sentence(outcome: UtteranceResult, at: int, change: Change, training: Training) -> str:
    known = outcome.reference_hanzi in training.sentences
    return "seen in training" if known else "not seen in training"


def _rate(outcome: UtteranceResult, at: int, change: Change, training: Training) -> str:
    return band(len(outcome.reference_pinyin) / outcome.seconds, SPEEDS, "syllables/s")


GROUPS: dict[str, Group] = {
    "speaker": lambda outcome, *_: outcome.speaker,
    "utterance length": lambda outcome, *_: band(len(outcome.reference_hanzi), LENGTHS, "tokens"),
    "position in the sentence": lambda outcome, at, *_: _position(at, len(outcome.reference_hanzi)),
    "syllable frequency in training": _frequency,
    "sentence in training": _sentence,
    "speaking rate": _rate,
    "signal-to-noise ratio": lambda outcome, *_: band(outcome.snr, NOISES, "dB"),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", GROUPS)
def test_breakdowns_recover_every_kind(tested, breakdowns, name: str, level: str):
    outcomes, injected, aligned, training = tested
    expected = Counter(
        (GROUPS[name](outcome, at, change, training), kind)
        for outcome, changes in zip(outcomes, injected, strict=True)
        for at, change in changes
        for kind in _kinds([change], level)
    )
    breakdown: Breakdown = breakdowns[level, name]
    found = Counter(
        {(each.name, kind): count for each in breakdown.groups for kind, count in each.kinds.items()}
    )
    assert _recovered(found, expected) >= MIN_RECOVERED
    for kind in {kind for _, kind in expected}:
        of_kind = [
            Counter({g: n for (g, k), n in counts.items() if k == kind}) for counts in (found, expected)
        ]
        assert _recovered(*of_kind) >= MIN_RECOVERED, kind
    whole = sum((utterance.counts(level).errors for utterance in aligned), 0)
    assert sum(each.counts.errors for each in breakdown.groups) == whole
    assert sum(each.counts.reference for each in breakdown.groups) == sum(
        len(outcome.reference_hanzi) for outcome in outcomes
    )
    assert all(each.low <= each.counts.rate <= each.high for each in breakdown.groups)


@pytest.fixture(scope="module")
def breakdowns(tested):
    _, _, aligned, training = tested
    return {
        (level, breakdown.name): breakdown
        for level in LEVELS
        for breakdown in find_breakdowns(aligned, level, training)
    }


def test_oracles_give_the_cost_of_each_stage(tested):
    _, injected, aligned, _ = tested
    perfect_one, perfect_two = find_oracles(aligned, LEVELS)
    changes = [change for changes in injected for _, change in changes]
    assert perfect_one.counts.errors == sum(change.attribution in ("language", "both") for change in changes)
    assert perfect_two.counts.errors == sum(change.syllable_kind is not None for change in changes)
