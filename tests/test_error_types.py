"""analysis/alignment.py and analysis/error_types.py: every error has one kind, totals are Levenshtein's."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from analysis.alignment import ALONE, Pair, align, hanzi_distance, readings, syllable_distance
from analysis.error_types import (
    HANZI_ERRORS,
    SYLLABLE_ERRORS,
    find_error_types,
    hanzi_error,
    syllable_error,
    top_confusions,
)

SYLLABLES = st.lists(
    st.sampled_from(["zhi1", "zi1", "zi4", "zhang1", "zang4", "an1", "ang1", "ni3", "li3", "er2"]),
    max_size=10,
)
HANZI = st.text(alphabet="是事时十氏好号的地得a", max_size=10)


def _sounds(reference: str, hypothesis: str) -> list[tuple[str | None, str | None]]:
    pairs = align(reference.split(), hypothesis.split(), syllable_distance)
    return [(pair.reference, pair.hypothesis) for pair in pairs]


def test_alignment_pairs_what_sounds_alike():
    # Two edits in any case; plain Levenshtein may pair hao3 with zi4.
    assert _sounds("ni3 hao3 shi4 jie4", "ni3 si4 jie4") == [
        ("ni3", "ni3"),
        ("hao3", None),
        ("shi4", "si4"),
        ("jie4", "jie4"),
    ]
    assert _sounds("shi4 hao3", "si4") == [("shi4", "si4"), ("hao3", None)]
    assert _sounds("hao3 shi4", "si4") == [("hao3", None), ("shi4", "si4")]


def test_fewest_edits_go_before_sound():
    # Pairing shi4 with si4 would need three edits; two substitutions are fewer, however they sound.
    assert _sounds("shi4 ma1", "guo2 si4") == [("shi4", "guo2"), ("ma1", "si4")]


def test_a_lost_and_a_new_syllable_are_not_two_changed_ones():
    assert _sounds("wo3 bu4 hao3", "wo3 hao3 ma5") == [
        ("wo3", "wo3"),
        ("bu4", None),
        ("hao3", "hao3"),
        (None, "ma5"),
    ]
    assert _sounds("shi4 si4", "si4 shi3") == [("shi4", "si4"), ("si4", "shi3")]


def test_equal_costs_prefer_the_pair_at_the_end():
    assert _sounds("ma1 ma1", "ma1") == [("ma1", "ma1"), ("ma1", None)]
    assert _sounds("hao3 ma1", "ma2 ma2 ma2")[-1] == ("ma1", "ma2")


def test_positions():
    pairs = align(["ni3", "hao3", "shi4"], ["hao3", "shi4", "ma5"], syllable_distance)
    assert [(p.reference_position, p.hypothesis_position) for p in pairs] == [
        (0, None),
        (1, 0),
        (2, 1),
        (None, 2),
    ]


@pytest.mark.parametrize(("reference", "hypothesis"), [("", ""), ("ma1", ""), ("", "ma1")])
def test_empty_sides(reference, hypothesis):
    assert _sounds(reference, hypothesis) == [
        (reference or None, hypothesis or None) for _ in range(bool(reference or hypothesis))
    ]


@settings(max_examples=300, deadline=None)
@given(SYLLABLES, SYLLABLES)
def test_syllable_errors_total_levenshtein(reference, hypothesis):
    pairs = align(reference, hypothesis, syllable_distance)
    assert [p.reference for p in pairs if p.reference is not None] == reference
    assert [p.hypothesis for p in pairs if p.hypothesis is not None] == hypothesis
    types = find_error_types([(reference, hypothesis)])
    assert sum(types.syllables.values()) == Levenshtein.distance(reference, hypothesis)
    difference = types.syllables["insertion"] - types.syllables["deletion"]
    assert difference == len(hypothesis) - len(reference)


@settings(max_examples=200, deadline=None)
@given(HANZI, HANZI)
def test_hanzi_errors_total_levenshtein(reference, hypothesis):
    pairs = align(reference, hypothesis, hanzi_distance)
    wrong = [hanzi_error(pair) for pair in pairs if not pair.right]
    assert len(wrong) == Levenshtein.distance(reference, hypothesis)
    assert set(wrong) <= set(HANZI_ERRORS)


@settings(max_examples=100, deadline=None)
@given(SYLLABLES.map(lambda s: s[:4]), SYLLABLES.map(lambda s: s[:4]))
def test_alignment_is_the_best_of_all(reference, hypothesis):
    """Against every alignment there is, tried one by one."""

    def cost(i: int, j: int) -> tuple[int, int]:
        if i == len(reference) or j == len(hypothesis):
            alone = len(reference) - i + len(hypothesis) - j
            return alone, ALONE * alone
        same = reference[i] == hypothesis[j]
        pair = (0, 0) if same else (1, syllable_distance(reference[i], hypothesis[j]))
        ways = [(pair, cost(i + 1, j + 1)), ((1, ALONE), cost(i + 1, j)), ((1, ALONE), cost(i, j + 1))]
        return min((here[0] + rest[0], here[1] + rest[1]) for here, rest in ways)

    found = [
        (1, ALONE)
        if p.reference is None or p.hypothesis is None
        else (not p.right, 0 if p.right else syllable_distance(p.reference, p.hypothesis))
        for p in align(reference, hypothesis, syllable_distance)
    ]
    assert (sum(edits for edits, _ in found), sum(sound for _, sound in found)) == cost(0, 0)


@pytest.mark.parametrize(
    ("reference", "hypothesis", "kind"),
    [
        ("ma1", "ma1", None),
        ("ma1", "ma3", "tone only"),
        ("zhi1", "chi1", "initial only"),
        ("an1", "ang1", "final only"),
        ("qu4", "qi4", "final only"),
        ("zhang1", "zang4", "initial and tone"),
        ("jiu3", "jia4", "final and tone"),
        ("ba1", "mo1", "initial and final"),
        ("ba1", "mo2", "everything"),
        ("ma1", None, "deletion"),
        (None, "ma1", "insertion"),
    ],
)
def test_kinds_of_syllable_errors(reference, hypothesis, kind):
    assert syllable_error(Pair(reference, hypothesis, 0, 0)) == kind
    assert kind is None or kind in SYLLABLE_ERRORS


@pytest.mark.parametrize(
    ("reference", "hypothesis", "kind"),
    [
        ("是", "是", None),
        ("是", "事", "homophone"),
        ("是", "十", "homophone but for the tone"),
        ("是", "好", "other hanzi"),
        ("是", "a", "other hanzi"),
        ("是", None, "deletion"),
        (None, "是", "insertion"),
    ],
)
def test_kinds_of_hanzi_errors(reference, hypothesis, kind):
    assert hanzi_error(Pair(reference, hypothesis, 0, 0)) == kind


def test_a_polyphone_is_a_homophone_in_any_of_its_readings():
    assert {"xing2", "hang2"} <= set(readings("行"))
    assert hanzi_error(Pair("行", "航", 0, 0)) == "homophone"
    assert hanzi_error(Pair("行", "型", 0, 0)) == "homophone"


def test_attribution_by_the_syllable_at_the_place():
    types = find_error_types(
        syllables=[(["ta1", "shi4", "lao3", "shi1"], ["ta1", "shi4", "nao3", "shi1", "ma5"])],
        hanzi=[("他是老师", "她是脑师吗")],
    )
    assert types.attribution == {"acoustic": 2, "language": 1}
    assert types.hanzi["homophone"] == 1
    assert types.hanzi["insertion"] == 1
    assert types.syllables["initial only"] == 1
    assert types.hanzi_confusions == [("他", "她", 1), ("老", "脑", 1)]


def test_speech_alone_has_no_hanzi_part():
    types = find_error_types([(["ma1"], ["ma2"])])
    assert (types.hanzi, types.attribution, types.hanzi_confusions) == ({}, {}, [])
    assert types.syllable_confusions == [("ma1", "ma2", 1)]


def test_confusions_are_ranked():
    pairs = (
        [Pair("a1", "a2", 0, 0)] * 2
        + [Pair("o1", "o2", 0, 0)] * 3
        + [Pair("e1", "e2", 0, 0), Pair("e1", None, 0, None)]
    )
    assert top_confusions(pairs, most=2) == [("o1", "o2", 3), ("a1", "a2", 2)]
