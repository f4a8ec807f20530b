"""Tests of numbers as digits: which become digits, texts of syllables, transcripts."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.hypotheses.digits import numbers_as_digits, with_digits
from utils.hypotheses.recognition import Alternative, Ending, Recognition
from utils.hypotheses.transcript_formats import FORMATS

_SUPPORT = Path(__file__).parents[1] / "support"


def segment(hanzi: str) -> Recognition:
    times = tuple((0.2 * index, 0.2 * index + 0.2) for index in range(len(hanzi)))
    return Recognition(0.0, 0.2 * len(hanzi), times, (Alternative(("ma1",) * len(hanzi), hanzi, 0.0),))


def lines(name: str) -> list[str]:
    found = (_SUPPORT / name).read_text(encoding="utf-8").splitlines()
    return [line for line in found if not line.startswith("#")]


def in_digits(hanzi: str) -> str:
    """The text with digits, which is that of a segment with digits."""
    labels = with_digits(segment(hanzi)).labels
    assert len(labels) in (0, len(hanzi))
    assert numbers_as_digits(hanzi) == ("".join(labels) or hanzi)
    return numbers_as_digits(hanzi)


@pytest.mark.parametrize("context", ["{}", "他说{}的时候", "没有，{}。"])
def test_idioms_approximations_and_small_numbers_stay_in_hanzi(context):
    texts = [context.format(text) for line in lines("numbers_in_hanzi.txt") for text in line.split()]
    assert len(set(texts)) >= 300
    assert [text for text in texts if in_digits(text) != text] == []


def test_quantities_become_digits():
    pairs = [line.split("\t") for line in lines("numbers_in_digits.tsv")]
    assert len(pairs) >= 100
    assert {hanzi: in_digits(hanzi) for hanzi, _ in pairs} == dict(pairs)


@given(
    st.text(alphabet="零〇一二两三五九幺十百千万亿兆点分之负到比加等于年月日号半几个块毛人周儿", max_size=12)
)
def test_any_row_of_numerals_is_written_and_keeps_its_other_characters(text):
    written = in_digits(text)
    assert [each for each in written if each in "个人周儿几"] == [
        each for each in text if each in "个人周儿几"
    ]


def test_every_format_has_the_digits():
    events = [with_digits(segment("有十五个人")), Ending(1.0)]
    written = {name: "".join(form.write("a b", events)) for name, form in FORMATS.items()}
    assert written["text"] == "有15个人\n"
    assert written["vtt"] == "WEBVTT\n\n00:00:00.000 --> 00:00:01.000\n有15个人\n"
    assert '"text": "有15个人"' in written["json"]
    assert '"hanzi": "有十五个人"' in written["json"]
    assert written["ctm"].splitlines()[1:3] == ["a_b 1 0.200 0.400 15 1.000", "a_b 1 0.600 0.200 个 1.000"]
    assert 'text = "15"' in written["textgrid"]
