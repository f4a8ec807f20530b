"""Tests of utils/metrics.py and analysis/intervals/bootstrap.py: fractions by hand, totals against jiwer."""

import jiwer
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.intervals.bootstrap import rate_interval
from utils.metrics import (
    ErrorCounts,
    count_errors,
    count_sentence_errors,
    count_tone_errors,
    count_toneless_errors,
    total,
)

SYLLABLES = ["ma1", "ma3", "ni3", "hao3", "hao4", "shi4", "zi5"]
SENTENCES = st.lists(st.sampled_from(SYLLABLES), max_size=12)


@pytest.mark.parametrize(("hypothesis", "rate"), [([], 0.0), (["ma1"], 1.0), (["ma1", "ma1"], 2.0)])
def test_empty_reference(hypothesis, rate):
    assert count_errors([], hypothesis).rate == rate
    assert jiwer.process_words("", " ".join(hypothesis)).wer == rate


def test_toneless_errors_leave_tones_aside():
    reference, hypothesis = ["ni3", "hao3", "ma5"], ["ni2", "hao4", "ba5"]
    assert count_errors(reference, hypothesis).rate == 3 / 3
    assert count_toneless_errors(reference, hypothesis).rate == pytest.approx(1 / 3)


def test_tone_errors_among_aligned_equal_bases():
    # ni and hao are right but for hao's tone; ba for ma is no tone error; wo was missed.
    counts = count_tone_errors(["ni3", "hao3", "ma5", "wo3"], ["ni3", "hao4", "ba5"])
    assert counts == ErrorCounts(substitutions=1, reference=2)
    assert counts.rate == 1 / 2


def test_toneless_units_have_no_tone_errors_and_keep_their_last_letter():
    reference, hypothesis = ["zheng", "zhi", "de"], ["zhen", "zhe", "de"]
    assert count_toneless_errors(reference, hypothesis) == count_errors(reference, hypothesis)
    assert count_tone_errors(reference, hypothesis) == ErrorCounts()


def test_sentence_errors():
    counts = [count_sentence_errors(["ni3"], ("ni3",)), count_sentence_errors("好", "号")]
    assert total(counts).rate == 1 / 2


@settings(max_examples=300)
@given(SENTENCES, SENTENCES)
def test_counts_equal_jiwer(reference, hypothesis):
    ours = count_errors(reference, hypothesis)
    theirs = jiwer.process_words(" ".join(reference), " ".join(hypothesis))
    assert (ours.substitutions, ours.insertions, ours.deletions) == (
        theirs.substitutions,
        theirs.insertions,
        theirs.deletions,
    )
    assert ours.rate == pytest.approx(theirs.wer)


def _sentences(rates: list[float], words: int = 100) -> list[ErrorCounts]:
    return [ErrorCounts(substitutions=round(rate * words), reference=words) for rate in rates]


def test_interval_covers_the_rate_and_shrinks_with_data():
    rng = np.random.default_rng(0)
    few = rate_interval(_sentences(list(rng.uniform(0, 0.4, 20))))
    many = rate_interval(_sentences(list(rng.uniform(0, 0.4, 2000))))
    assert few.low < 0.2 < few.high
    assert many.low < 0.2 < many.high
    assert (many.high - many.low) < (few.high - few.low) / 5


def test_speakers_are_resampled_whole_where_there_are_five():
    # All utterances of a speaker are equal: only the differences between speakers count.
    counts = _sentences([0.1] * 40 + [0.2] * 40 + [0.3] * 40 + [0.4] * 40 + [0.5] * 40)
    speakers = [f"S{i // 40}" for i in range(200)]
    by_speaker = rate_interval(counts, speakers)
    by_utterance = rate_interval(counts)
    assert (by_speaker.unit, by_utterance.unit) == ("speaker", "utterance")
    assert by_speaker.high - by_speaker.low > 3 * (by_utterance.high - by_utterance.low)
    assert rate_interval(counts, ["a", "b", "c", "d"] * 50).unit == "utterance"


def test_interval_is_reproducible_and_without_error_of_zero_width():
    counts = _sentences([0.1, 0.3, 0.0, 0.7])
    assert rate_interval(counts) == rate_interval(counts)
    clean = rate_interval(_sentences([0.0] * 10))
    assert (clean.low, clean.high) == (0.0, 0.0)
    assert (rate_interval([]).low, rate_interval([]).high) == (0.0, 0.0)
