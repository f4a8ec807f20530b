"""Tests of numbers as digits: texts of syllables and transcripts."""

import pytest

from utils.hypotheses.digits import numbers_as_digits, with_digits
from utils.hypotheses.recognition import Alternative, Ending, Segment
from utils.hypotheses.transcript_formats import FORMATS

pytest.importorskip("wetext")


def segment(hanzi: str) -> Segment:
    times = tuple((0.2 * index, 0.2 * index + 0.2) for index in range(len(hanzi)))
    return Segment(0.0, 0.2 * len(hanzi), times, (Alternative(("ma1",) * len(hanzi), hanzi, 0.0),))


@pytest.mark.parametrize(
    ("hanzi", "written"),
    [
        ("一百二十三块", "123块"),
        ("我们一起去", "我们一起去"),
        ("千万不要三心二意", "千万不要三心二意"),
        ("增长百分之五十", "增长50%"),
        ("有十五个人", "有15个人"),
        ("", ""),
    ],
)
def test_numbers_become_digits_and_words_stay(hanzi, written):
    assert numbers_as_digits(hanzi) == written
    labelled = with_digits(segment(hanzi))
    assert "".join(labelled.labels or hanzi) == written
    assert len(labelled.labels or hanzi) == len(hanzi)


def test_a_number_has_the_time_of_its_syllables():
    assert with_digits(segment("有十五个人")).labels == ("有", "15", "", "个", "人")


def test_every_format_has_the_digits():
    events = [with_digits(segment("有十五个人")), Ending(1.0)]
    written = {name: "".join(form.write("a b", events)) for name, form in FORMATS.items()}
    assert written["text"] == "有15个人\n"
    assert written["vtt"] == "WEBVTT\n\n00:00:00.000 --> 00:00:01.000\n有15个人\n"
    assert '"text": "有15个人"' in written["json"]
    assert '"hanzi": "有十五个人"' in written["json"]
    assert written["ctm"].splitlines()[1] == "a_b 1 0.200 0.200 15 1.000"
    assert 'text = "15"' in written["textgrid"]
