"""Tests of numbers as digits: texts of syllables and transcripts."""

import json
from dataclasses import replace

import numpy as np
import pytest

from serving.endpoints.responses import response_body
from utils.hypotheses.digits import numbers_as_digits, with_digits
from utils.hypotheses.recognition import Alternative, Ending, Segment
from utils.hypotheses.transcript_formats import FORMATS, written_words

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
        ("一百到两百", "100~200"),
        ("上午九点一刻", "上午九点一刻"),
        ("九点十五分", "9:15"),
        ("跑了一万五千米", "跑了一万五千米"),
        ("早上八点十五分", "早上八点十五分"),
        ("花了一百美元", "花了一百美元"),
        ("二零二四年一月二日", "二零二四年一月二日"),
        ("三分之一的人", "1/3的人"),
        ("三三两两的人", "三三两两的人"),
        ("有十五个人十有八九会来", "有15个人十有八九会来"),
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
    assert written["ctm"].splitlines()[1:3] == ["a_b 1 0.200 0.400 15 1.000", "a_b 1 0.600 0.200 个 1.000"]
    assert 'text = "15"' in written["textgrid"]


def test_a_number_is_one_word_over_all_its_syllables():
    """It is as certain as its least certain syllable."""
    confidence = (0.9, 0.8, 0.5, 0.7, 0.9)
    counted = with_digits(replace(segment("有十五个人"), confidence=confidence))
    assert written_words(counted) == [("有", 0, 1), ("15", 1, 3), ("个", 3, 4), ("人", 4, 5)]
    words = json.loads(response_body("verbose_json", [counted], 1.0, ["word"]))["words"]
    assert [word["word"] for word in words] == ["有", "15", "个", "人"]
    assert words[1] == {"word": "15", "start": 0.2, "end": 0.6, "pinyin": "ma1 ma1", "confidence": 0.5}
    answer = json.loads(response_body("json", [counted], 1.0, log_probabilities=True))
    assert [entry["token"] for entry in answer["logprobs"]] == ["有", "15", "个", "人"]
    assert answer["logprobs"][1]["logprob"] == pytest.approx(np.log(0.5), abs=1e-4)
