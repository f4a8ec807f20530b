"""Tests of analysis/errors/alignment.py: totals equal the scorer's; equal alignments pair similar sounds."""

import jiwer
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.errors.alignment import align
from analysis.errors.kinds import hanzi_distance, is_polyphone, readings, readings_in_use
from utils.mandarin.syllable_distance import FARTHEST, syllable_distance
from utils.metrics import count_errors

SYLLABLES = ["zhi1", "zi1", "zi4", "zhang1", "zang4", "an1", "ang1", "ni3", "li3", "er2"]


def _sounds(reference: str, hypothesis: str) -> list[tuple[str | None, str | None]]:
    pairs = align(reference.split(), hypothesis.split(), syllable_distance)
    return [(pair.reference, pair.hypothesis) for pair in pairs]


def _edits(pairs) -> tuple[int, int, int]:
    return (
        sum(pair.is_substitution for pair in pairs),
        sum(pair.reference is None for pair in pairs),
        sum(pair.hypothesis is None for pair in pairs),
    )


def _sequences(alphabet, least: int = 0, most: int = 12):
    return st.lists(st.sampled_from(list(alphabet)), min_size=least, max_size=most)


def test_similar_sounds_are_paired():
    # One substitution and one deletion in any case; plain Levenshtein may pair hao3 with si4.
    assert _sounds("ni3 hao3 shi4 jie4", "ni3 si4 jie4")[1:3] == [("hao3", None), ("shi4", "si4")]
    assert _sounds("shi4 hao3", "si4") == [("shi4", "si4"), ("hao3", None)]
    assert _sounds("hao3 shi4", "si4") == [("hao3", None), ("shi4", "si4")]
    assert _sounds("wo3 men5", "wo3 wo4 en1 men5") == [
        ("wo3", "wo3"),
        (None, "wo4"),
        (None, "en1"),
        ("men5", "men5"),
    ]


@settings(max_examples=300)
@given(_sequences(SYLLABLES, 1), _sequences(SYLLABLES))
def test_edits_are_those_of_jiwer_and_no_token_is_lost(reference, hypothesis):
    theirs = jiwer.process_words(" ".join(reference), " ".join(hypothesis))
    pairs = align(reference, hypothesis, syllable_distance)
    assert _edits(pairs) == (theirs.substitutions, theirs.insertions, theirs.deletions)
    assert [pair.reference for pair in pairs if pair.reference is not None] == reference
    assert [pair.hypothesis for pair in pairs if pair.hypothesis is not None] == hypothesis


@settings(max_examples=150)
@given(_sequences(SYLLABLES, most=5), _sequences(SYLLABLES, most=5))
def test_alignment_sounds_best_among_the_scorers(reference, hypothesis):
    """Against every alignment with the scorer's numbers of edits, tried one by one."""
    counts = count_errors(reference, hypothesis)
    scored = (counts.substitutions, counts.insertions, counts.deletions)

    def best(i: int, j: int, edits: tuple[int, int, int]) -> float:
        if min(edits) < 0:
            return float("inf")
        if i == len(reference) and j == len(hypothesis):
            return 0 if not any(edits) else float("inf")
        s, n, d = edits
        ways = []
        if i < len(reference) and j < len(hypothesis):
            same = reference[i] == hypothesis[j]
            here = 0 if same else syllable_distance(reference[i], hypothesis[j])
            ways.append(here + best(i + 1, j + 1, (s - (not same), n, d)))
        if j < len(hypothesis):
            ways.append(best(i, j + 1, (s, n - 1, d)))
        if i < len(reference):
            ways.append(best(i + 1, j, (s, n, d - 1)))
        return min(ways)

    pairs = align(reference, hypothesis, syllable_distance)
    sound = sum(syllable_distance(p.reference, p.hypothesis) for p in pairs if p.is_substitution)
    assert sound == best(0, 0, scored)


@pytest.mark.parametrize(
    ("left", "right", "distance"),
    [
        ("ma1", "ma1", 0),
        ("ma2", "ma3", 10),
        ("ma1", "ma5", 10),
        ("ma1", "ma4", 20),
        ("zhi1", "zi1", 20),
        ("lian2", "liang2", 20),
        ("hua1", "huar1", 10),
        ("ba1", "da1", 40),
        ("zhang1", "zan4", 60),
        ("ba1", "mo2", 100),
        ("ba1", "WTO", 100),
        ("WTO", "WTO", 0),
    ],
)
def test_distances(left, right, distance):
    assert syllable_distance(left, right) == syllable_distance(right, left) == distance


def test_hanzi_sound_like_their_nearest_readings():
    assert hanzi_distance("行", "航") == 0
    assert hanzi_distance("是", "十") == 20
    assert hanzi_distance("是", "a") == FARTHEST
    assert {"xing2", "hang2"} <= set(readings("行"))
    assert readings("二人") == readings("a") == ()


def test_readings_in_use_leave_out_readings_of_dictionaries_only():
    assert readings_in_use("大") == ("da4",)
    assert set(readings_in_use("行")) == {"xing2", "hang2"}
    assert set(readings_in_use("子")) == {"zi3", "zi5"}
    assert is_polyphone("行") and not is_polyphone("大") and not is_polyphone("子")
