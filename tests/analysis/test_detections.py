"""Tests of keyword detection in streams of probabilities: hits, misses and false alarms."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.keyword.detections import (
    SpokenKeyword,
    calibrated,
    late_seconds_of,
    match,
    onset_seconds,
    operating_point,
    read_spoken_keywords,
    write_detection_report,
)
from streaming.keyword import Detection, DetectionConfig, KeywordDetector
from utils.errors import ConfigError, CorpusError

LABELS = ("_silence_", "_unknown_", "打开", "关闭")
CALL = 0.02


def stream(calls: int, *words: tuple[int, int, str]) -> np.ndarray:
    """Probabilities of silence with words between given calls."""
    probabilities = np.full((calls, len(LABELS)), 0.01)
    probabilities[:, 0] = 0.97
    for start, end, word in words:
        probabilities[start:end] = 0.01
        probabilities[start:end, LABELS.index(word)] = 0.97
    return probabilities


def detector(threshold: float = 0.5, smoothing: float = 100, refractory: float = 1000, silent: int = 0):
    return KeywordDetector(LABELS, DetectionConfig(refractory, smoothing, threshold), CALL, silent)


def test_a_word_fires_once_and_at_its_time():
    found = detector().feed(stream(200, (50, 90, "打开"), (150, 190, "关闭")))
    assert [detection.keyword for detection in found] == ["打开", "关闭"]
    # Five probabilities are averaged: the mean exceeds one half with the third one of the word.
    assert [detection.seconds for detection in found] == pytest.approx([53 * CALL, 153 * CALL])
    assert all(0.5 <= detection.score <= 0.97 for detection in found)


def test_the_refractory_time_holds_for_every_keyword_and_ends():
    probabilities = stream(300, (50, 80, "打开"), (80, 110, "关闭"))
    assert len(detector(refractory=1300).feed(probabilities)) == 1
    assert [detection.keyword for detection in detector(refractory=200).feed(probabilities)][:2] == [
        "打开",
        "打开",
    ]


@pytest.mark.parametrize("clip_ms", [600, 1600, 2500])
def test_a_word_fires_once_however_long_the_clip(clip_ms: int):
    """A word is recognised from its end until it has left the model's window, a clip later."""
    calls = round(clip_ms / 1000 / CALL)
    word = stream(100 + 2 * calls, (50, 50 + calls, "打开"))
    config = DetectionConfig.for_clip(clip_ms)
    assert len(KeywordDetector(LABELS, config, CALL).feed(word)) == 1
    # The same word spoken again after that is detected again.
    again = np.concatenate([word, word])
    assert len(KeywordDetector(LABELS, config, CALL).feed(again)) == 2


def test_a_flicker_is_smoothed_away():
    flicker = stream(100, (50, 51, "打开"))
    assert detector(smoothing=100).feed(flicker) == []
    assert len(detector(smoothing=0).feed(flicker)) == 1


def test_nothing_is_detected_in_the_silence_before_the_sound():
    """The times are those of the sound: its first call ends after one call."""
    probabilities = stream(200, (10, 45, "打开"), (150, 170, "打开"))
    found = detector(silent=50).feed(probabilities)
    assert [detection.seconds for detection in found] == pytest.approx([103 * CALL])
    found = detector(silent=20).feed(probabilities)
    assert [detection.seconds for detection in found] == pytest.approx([CALL, 133 * CALL])


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.lists(st.integers(1, 60), max_size=12), st.floats(0, 400))
def test_any_chunks_give_the_same(seed: int, chunks: list[int], smoothing: float):
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.full(len(LABELS), 0.3), 300)
    whole = detector(0.6, smoothing, 300).feed(probabilities)
    stream, found, at = detector(0.6, smoothing, 300), [], 0
    for size in [*chunks, 300]:
        found += stream.feed(probabilities[at : at + size])
        at += size
    assert [(d.seconds, d.keyword) for d in found] == [(d.seconds, d.keyword) for d in whole]


def test_settings_out_of_range_are_refused():
    with pytest.raises(ConfigError, match="threshold"):
        DetectionConfig(1000, threshold=1.5)
    with pytest.raises(ConfigError, match="smoothing_ms"):
        DetectionConfig(1000, smoothing_ms=-1)


SPOKEN = [SpokenKeyword(1.0, 1.5, "打开"), SpokenKeyword(3.0, 3.5, "关闭"), SpokenKeyword(8.0, 8.5, "打开")]


def detections(*pairs: tuple[float, str]) -> list[Detection]:
    return [Detection(seconds, keyword, 0.9, 0.5) for seconds, keyword in pairs]


def test_matching():
    matched = match(detections((1.4, "打开"), (1.9, "打开"), (3.2, "打开"), (9.4, "打开")), SPOKEN, 1.0)
    assert matched.hits == (0, None, 3)
    found = detections((1.4, "打开"), (1.9, "打开"), (3.2, "打开"), (9.4, "打开"))
    assert onset_seconds(found, SPOKEN, matched) == pytest.approx((0.4 + 1.4) / 2)
    assert onset_seconds((), SPOKEN, match((), SPOKEN, 1.0)) == 0
    assert matched.false_alarms == (1, 2)  # a second detection; a word other than the spoken one
    assert matched.misses == 1
    assert match(detections((9.6, "打开")), SPOKEN, 1.0).false_alarms == (0,)  # more than a second late
    assert match(detections((0.9, "打开")), SPOKEN, 1.0).false_alarms == (0,)  # before it was spoken


def test_a_keyword_may_be_detected_as_long_as_it_is_in_the_window_or_the_average():
    """With clips of two seconds 2.3 s after its end, which is no false alarm."""
    late = late_seconds_of(DetectionConfig.for_clip(2000).refractory_ms)
    assert late == pytest.approx(2.3) and late_seconds_of(200) == 1.0
    assert match(detections((10.7, "打开")), SPOKEN, late).hits == (None, None, 0)
    point = operating_point(0.5, detections((10.7, "打开"), (10.9, "打开")), SPOKEN, 1.0, late)
    assert (point.missed, point.false_alarms) == (2, 1)


def test_trade_off_and_calibration(tmp_path: Path):
    scores = [(1.2, "打开", 0.9), (3.3, "关闭", 0.6), (5.0, "打开", 0.7), (8.2, "打开", 0.8)]

    def detect(threshold: float) -> list[Detection]:
        return [Detection(*score, threshold) for score in scores if score[2] >= threshold]

    points = [operating_point(t, detect(t), SPOKEN, 0.5, 1.0) for t in (0.5, 0.65, 0.75, 0.95)]
    assert [(p.missed, p.false_alarms) for p in points] == [(0, 1), (1, 1), (1, 0), (3, 0)]
    assert points[0].false_alarms_per_hour == 2 and points[3].false_reject_rate == 1
    assert calibrated(points, 0).threshold == 0.75
    assert calibrated(points, 2).threshold == 0.5
    with pytest.raises(CorpusError, match="0 false alarms an hour"):
        calibrated(points[:2], 0)
    found = detect(0.65)
    matched = match(found, SPOKEN, 1.0)
    write_detection_report(tmp_path / "report", points, points[1], found, SPOKEN, matched, 1800)
    lines = (tmp_path / "report" / "trade_off.tsv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 5 and lines[1].split("\t")[-2:] == ["0", "1"]
    assert "3.00\t3.50\t关闭" in (tmp_path / "report" / "missed.tsv").read_text(encoding="utf-8")
    assert (tmp_path / "report" / "detections.tsv").read_text(encoding="utf-8").count("false alarm") == 1
    assert (tmp_path / "report" / "trade_off.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("start end keyword\n", "not a list of spoken keywords"),
        ("start\tend\tkeyword\n2\t1\t打开\n", ":2"),
        ("start\tend\tkeyword\n2\n", ":2"),
    ],
    ids=["header", "times", "fields"],
)
def test_a_bad_list_names_its_line(tmp_path: Path, text: str, message: str):
    (tmp_path / "spoken.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(CorpusError) as caught:
        read_spoken_keywords(tmp_path / "spoken.tsv")
    assert message in str(caught.value)
