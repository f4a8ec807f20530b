"""Tests of analysis/intervals and errors/oracles.py: two systems compared, and rates with a perfect part."""

import random

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.errors.align_all import align_all
from analysis.inputs.normalisation import hanzi_tokens
from analysis.inputs.utterance_results import (
    HANZI,
    LANGUAGE,
    LEVELS,
    PIPELINE,
    SYLLABLES,
    SystemOutput,
    UtteranceResult,
)
from analysis.intervals.bootstrap import difference_interval
from analysis.intervals.comparison import FEW_SEGMENTS, compare, error_segments, matched_pairs_test
from analysis.results.collect import collect_results
from analysis.results.rates import find_oracles
from tests.support.injected_errors import INJECTORS, gold_outcomes, inject
from tests.support.report_results import score
from utils.errors import CorpusError
from utils.hypotheses.recognition import Alternative
from utils.metrics import ErrorCounts


def _alignments(reference: str, *outputs: str):
    """Alignments of outputs (words stand for syllables) with one reference."""
    return [
        align_all(
            [UtteranceResult("id", "", 0.0, tuple(reference.split()), tuple(output.split()), "", "")],
            (SYLLABLES,),
        )[0].syllables
        for output in outputs
    ]


def test_segments_of_the_worked_example():
    """The example by which NIST explains the test: four segments, differences -2, 1, 1, -1."""
    reference = "it was the best of times it was the worst of times it was"
    first = "its the best of times it is the worst of times or it was"
    other = "it was the best times it won the test of times it was"
    segments = error_segments(*_alignments(reference, first, other))
    assert segments == [(2, 0), (0, 1), (1, 2), (1, 0)]
    test = matched_pairs_test(segments)
    assert (test.segments, test.mean) == (4, -1 / 4)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=60))
def test_the_statistic_is_that_of_a_paired_t_test(segments):
    test = matched_pairs_test(segments)
    first, second = np.array(segments, float).T
    if np.ptp(second - first) == 0:
        assert test.statistic is None
        return
    theirs = scipy.stats.ttest_rel(second, first)
    assert test.statistic == pytest.approx(theirs.statistic)
    if len(segments) >= FEW_SEGMENTS:
        assert test.p_value == pytest.approx(2 * scipy.stats.norm.sf(abs(theirs.statistic)))


@pytest.mark.parametrize(
    "segments",
    [
        [(1, 0), (3, 0), (1, 0)],
        [(0, 2), (1, 0), (0, 3), (2, 2), (1, 2)],
        [(0, 1), (1, 0)],
        [(0, 4)] * 9 + [(2, 0)],
    ],
)
def test_p_values_of_few_segments_are_those_of_all_signs(segments):
    differences = np.array([b - a for a, b in segments])
    theirs = scipy.stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    assert matched_pairs_test(segments).p_value == pytest.approx(theirs.pvalue)


@pytest.fixture(scope="module")
def systems():
    """Two outputs of 250 utterances: the second with half of the errors."""
    gold = gold_outcomes(250, seed=2)
    return [
        align_all(inject(gold, list(INJECTORS), share, seed)[0], LEVELS)
        for share, seed in ((0.4, 5), (0.15, 6))
    ]


def test_a_better_system_is_recognised(systems):
    comparison = compare(*systems, HANZI, ("first", "second"))
    assert comparison.difference < 0
    assert comparison.low <= comparison.difference <= comparison.high < 0
    assert comparison.unit == "speaker"
    assert comparison.matched_pairs.p_value < 1e-6
    assert comparison.utterances["better"] > comparison.utterances["worse"] > 0
    assert sum(comparison.utterances.values()) == 250
    reference = sum(alignment.counts(HANZI).reference for alignment in systems[0])
    assert sum(comparison.tokens.values()) == reference
    assert comparison.better[0].errors[0] > comparison.better[0].errors[1]
    gains = [change.errors[0] - change.errors[1] for change in comparison.better]
    assert gains == sorted(gains, reverse=True)
    assert all(change.errors[0] < change.errors[1] for change in comparison.worse)
    for side in (0, 1):
        kinds = sum(counts[side] for counts in comparison.kinds.values())
        assert kinds == sum(alignment.counts(HANZI).errors for alignment in systems[side])


def test_other_references_are_refused(systems):
    with pytest.raises(CorpusError, match="different references"):
        compare(systems[0], systems[1][::-1], HANZI, ("a", "b"))


def test_difference_interval_pairs_the_draws():
    """Two systems that differ by one error in every utterance do so in every draw."""
    rng = random.Random(0)
    first = [ErrorCounts(substitutions=rng.randint(0, 9), reference=10) for _ in range(50)]
    other = [ErrorCounts(substitutions=each.substitutions + 1, reference=10) for each in first]
    interval = difference_interval(first, other)
    assert (interval.low, interval.high) == pytest.approx((0.1, 0.1))


def test_best_of_the_n_best():
    readings = (
        Alternative(("ma1",), "妈", -1.0),
        Alternative(("ma3",), "马", -2.0),
        Alternative((), "", -3.0),
    )
    outcome = UtteranceResult("id", "", 0.0, ("ma3",), ("ma1",), "马", "妈", "码", n_best=readings)
    oracles = {
        (oracle.level, oracle.name): oracle.counts.errors
        for oracle in find_oracles(align_all([outcome], LEVELS), LEVELS)
    }
    assert oracles == {
        (HANZI, "stage one perfect"): 1,
        (HANZI, "stage two perfect"): 1,
        (SYLLABLES, "best of the n best"): 0,
        (HANZI, "best of the n best"): 0,
    }
    assert [oracle.name for oracle in find_oracles(align_all([outcome], (SYLLABLES,)), (SYLLABLES,))] == [
        "best of the n best"
    ]


@pytest.mark.parametrize("written", [str, hanzi_tokens], ids=["text", "tokens"])
def test_the_oracle_counts_the_same_tokens_as_the_main_error_rate(written):
    """A Latin word is one token: 我 爱 python against 你 爱 java and 你 爱 python, 2/3 and at best 1/3."""
    pinyin = ("wo3", "ai4")
    readings = (Alternative(pinyin, "你爱 java", -1.0), Alternative(pinyin, "你爱 python", -2.0))
    outcome = UtteranceResult(
        "id", "", 0.0, pinyin, pinyin, written("我爱 python"), written("你爱 java"), n_best=readings
    )
    aligned = align_all([outcome], (HANZI,))
    (oracle,) = find_oracles(aligned, (HANZI,))
    best = oracle.counts
    assert (best.errors, best.reference) == (1, 3)
    headline = aligned[0].counts(HANZI)
    assert (headline.errors, headline.reference) == (2, 3)
    assert score([outcome], LANGUAGE)["cer"] == 2 / 3


def _read_by(speakers: str, pinyin: str, hanzi: str) -> list[UtteranceResult]:
    """Six sentences, each read by all speakers; only the first sentence is wrong."""
    return [
        UtteranceResult(
            f"{speaker}{number}",
            speaker,
            1.0,
            ("ta1", f"ma{number % 4 + 1}"),
            ("ta1", f"ma{number % 4 + 1}" if number else pinyin),
            f"他{chr(0x4E00 + number)}",
            f"他{hanzi if number == 0 else chr(0x4E00 + number)}",
        )
        for number in range(6)
        for speaker in speakers
    ]


@pytest.mark.parametrize(
    ("task", "pinyin", "unit"),
    [(LANGUAGE, "ma1", "sentence"), (PIPELINE, "ma4", "speaker")],
    ids=["from the reference syllables", "recognised"],
)
def test_results_report_and_comparison_resample_the_same_units(task, pinyin, unit):
    outcomes = _read_by("abcdef", pinyin, "妈")
    results = score(outcomes, task)
    facts = collect_results([SystemOutput("a", outcomes), SystemOutput("b", outcomes)], (HANZI,), task, "")
    (rate,) = [rate for rate in facts.systems[0].rates if rate.name == "hanzi error"]
    assert results["interval_unit"] == rate.unit == facts.comparisons[0].unit == unit
    assert results["intervals"]["cer"] == [rate.low, rate.high]
    assert rate.rate == results["cer"] == 6 / 72
