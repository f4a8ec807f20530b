"""Tests of analysis/page: audio and pictures of utterances, with syllables drawn at their times."""

import base64
import io
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image

from analysis.inputs.utterance_results import HANZI, SYLLABLES, UtteranceResult
from analysis.page.collect_evidence import (
    NO_PICTURE,
    NO_RECORDING,
    NO_SOUND,
    collect_evidence,
    evidence_of,
    most_errors,
    shown_syllables,
)
from analysis.page.posterior_picture import (
    FILL,
    FONT_SIZE,
    GAP,
    LANE_HEIGHT,
    MISSED,
    RIGHT,
    SPECTROGRAM_HEIGHT,
    WIDTH,
    WRONG,
    draw_posteriors,
)
from analysis.page.rendering import recording_address
from analysis.page.report import Evidence
from utils.audio.samples import write_wav
from utils.errors import AudioError
from utils.hypotheses.inspection import Inspection

RATE, SECONDS = 16_000, 4.0
BURST = (2.0, 2.5)  # seconds
CLASSES = ("ni3", "ma3", "ma1", " ", "_")
FRAME = 0.08  # seconds
PEAK_FRAMES = {"ni3": (12, 1.0), "ma3": (28, 0.75)}  # the second begins at 2.24 s
PIXELS = WIDTH / SECONDS


def burst(pitch: float = 1000.0) -> np.ndarray:
    """Faint noise, and a tone in the middle of it."""
    time = np.arange(int(SECONDS * RATE)) / RATE
    tone = 0.4 * np.sin(2 * np.pi * pitch * time) * ((time >= BURST[0]) & (time < BURST[1]))
    return (tone + np.random.default_rng(0).normal(0, 1e-4, len(time))).astype(np.float32)


@pytest.fixture(scope="module")
def recording(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("evidence") / "burst.wav"
    write_wav(path, burst(), RATE)
    return path


@pytest.fixture(scope="module")
def inspection() -> Inspection:
    """Posteriors: blank nearly everywhere, ni3 at 1 s, ma3 at the burst with ma1 as second best class."""
    posteriors = np.zeros((round(SECONDS / FRAME), len(CLASSES)), np.float32)
    for name, (frame, probability) in PEAK_FRAMES.items():
        posteriors[frame, CLASSES.index(name)] = probability
    posteriors[28, CLASSES.index("ma1")] = 0.25
    posteriors[:, -1] = 1 - posteriors.sum(axis=1)
    return Inspection(posteriors, CLASSES, FRAME)


def outcome(reference: str, output: str, times: tuple[tuple[float, float], ...], **others) -> UtteranceResult:
    return UtteranceResult(
        "one", "", SECONDS, tuple(reference.split()), tuple(output.split()), "", "", times=times, **others
    )


@pytest.fixture(scope="module")
def confused(recording) -> UtteranceResult:
    return outcome("ni3 ma1", "ni3 ma3", ((0.75, 1.25), (2.0, 2.5)), audio=str(recording))


@pytest.fixture(scope="module")
def evidence(confused, inspection) -> Evidence:
    return evidence_of(confused, lambda _: inspection)


def content(address: str, kind: str) -> io.BytesIO:
    head, _, body = address.partition(",")
    assert head == f"data:{kind};base64"
    return io.BytesIO(base64.b64decode(body, validate=True))


def test_sound_is_the_recording(evidence):
    samples, rate = soundfile.read(content(evidence.sound, "audio/mpeg"))
    assert rate == RATE
    assert len(samples) / rate == pytest.approx(SECONDS, abs=0.1)  # an MP3 ends with a whole frame
    power = np.square(samples[: int(SECONDS * RATE)]).reshape(-1, RATE // 20).mean(axis=1)  # 50 ms each
    loud = np.flatnonzero(power > 0.01) / 20
    assert (loud[0], loud[-1]) == pytest.approx((BURST[0], BURST[1] - 0.05), abs=0.11)


def test_picture_can_be_read_and_has_the_time_as_its_width(evidence):
    picture = Image.open(content(evidence.picture, "image/webp"))
    picture.load()
    assert picture.size == (WIDTH, SPECTROGRAM_HEIGHT + 3 * (GAP + LANE_HEIGHT))
    assert len(evidence.picture) < 60_000
    assert evidence.seconds == SECONDS
    assert FONT_SIZE * 350 / WIDTH > 8  # pixels on a phone


def test_tracks_describe_the_picture(evidence):
    assert [label for label, _ in evidence.tracks] == ["spectrogram", "recognised", "missed", "blank"]
    texts = dict(evidence.tracks)
    assert "4.0 seconds" in texts["spectrogram"]
    assert "nǐ 100%, mǎ 75%" in texts["recognised"]
    assert "mā 25%" in texts["missed"]
    assert "96%" in texts["blank"]


@pytest.mark.parametrize("pitch", [500.0, 3000.0])
def test_a_burst_is_at_its_time_and_pitch(inspection, pitch):
    picture = draw_posteriors(burst(pitch), inspection, [], [])
    light = np.asarray(picture.convert("L"), float)[:SPECTROGRAM_HEIGHT]
    bright = np.flatnonzero(light.max(axis=0) > 200) / PIXELS
    assert bright[0] == pytest.approx(BURST[0], abs=0.04)  # half a frame of the analysis
    assert bright[-1] == pytest.approx(BURST[1], abs=0.04)
    row = light[:, int(2.25 * PIXELS)].argmax()
    mel = np.log(1 + pitch / 700) / np.log(1 + RATE / 2 / 700)
    assert 1 - row / SPECTROGRAM_HEIGHT == pytest.approx(mel, abs=0.03)


def coloured(picture: Image.Image, kind: str, track: int) -> np.ndarray:
    """The filled height of each column of a track of one lane: (WIDTH,), 0 to 1."""
    top = SPECTROGRAM_HEIGHT + GAP + track * (LANE_HEIGHT + GAP)
    lane = np.asarray(picture)[top : top + LANE_HEIGHT]
    return (lane == FILL[kind]).all(axis=2).sum(axis=0) / LANE_HEIGHT


def test_posteriors_are_drawn_at_their_time_and_height(confused, inspection):
    picture = draw_posteriors(burst(), inspection, *shown_syllables(confused, inspection))
    for name, kind, track in (("ma3", WRONG, 0), ("ma1", MISSED, 1)):
        height = coloured(picture, kind, track)
        columns = np.flatnonzero(height)
        assert columns[0] == round(28 * FRAME * PIXELS)
        assert columns[-1] == round(29 * FRAME * PIXELS) - 1
        expected = inspection.posteriors[28, CLASSES.index(name)]
        np.testing.assert_allclose(height[columns], expected, atol=0.5 / LANE_HEIGHT)
    right = np.flatnonzero(coloured(picture, RIGHT, 0))
    assert right[0] >= 12 * FRAME * PIXELS - 1 and right[-1] < 13 * FRAME * PIXELS


def test_missed_syllables_are_located_between_their_neighbours(inspection):
    two = outcome("ni3 ma1 ma1 ni3 ma1", "ni3 ni3", ((0.5, 1.5), (2.5, 3.5)))
    recognised, missed = shown_syllables(two, inspection)
    assert [(syllable.name, syllable.start, syllable.end, syllable.kind) for syllable in recognised] == [
        ("nǐ", 0.5, 1.5, RIGHT),
        ("nǐ", 2.5, 3.5, RIGHT),
    ]
    # Two between the middles at 1 s and 3 s, one from there to the end.
    assert [(syllable.start, syllable.end) for syllable in missed] == [(1.0, 2.0), (2.0, 3.0), (3.0, 4.0)]
    assert {(syllable.name, syllable.column, syllable.kind) for syllable in missed} == {("mā", 2, MISSED)}


def test_an_empty_output(inspection):
    recognised, missed = shown_syllables(outcome("ni3 zhuang1", "", ()), inspection)
    assert recognised == []
    assert [(syllable.name, syllable.column, syllable.start, syllable.end) for syllable in missed] == [
        ("nǐ", 0, 0.0, 2.0),
        ("zhuāng", None, 2.0, 4.0),
    ]
    assert draw_posteriors(burst(), inspection, recognised, missed).width == WIDTH


def test_missing_parts_are_explained(recording, inspection, tmp_path):
    def look(audio: Path, seconds: float = SECONDS, found: Inspection | None = inspection) -> Evidence:
        result = UtteranceResult(
            "one", "", seconds, ("ni3",), ("ma1",), "", "", audio=str(audio), times=((0, 1),)
        )
        return evidence_of(result, lambda _: found)

    assert look(tmp_path / "gone.wav") == Evidence("one", "", "", SECONDS, (NO_RECORDING,))
    assert look(recording, seconds=500.0) == Evidence("one", "", "", 500.0, (NO_SOUND, NO_PICTURE))
    cut = look(recording, found=None)
    assert (cut.picture, cut.tracks) == ("", (NO_PICTURE,))
    assert cut.sound == recording_address(recording) != ""
    (tmp_path / "broken.wav").write_text("no sound")
    with pytest.raises(AudioError, match=r"broken\.wav"):
        look(tmp_path / "broken.wav")


def test_the_worst_utterances_come_first(recording, inspection):
    def result(name: str, reference: str, output: str, hanzi: str = "", written: str = "") -> UtteranceResult:
        times = tuple((i / 4, i / 4 + 0.2) for i in range(len(output.split())))
        pinyin = (tuple(reference.split()), tuple(output.split()))
        return UtteranceResult(name, "", SECONDS, *pinyin, hanzi, written, audio=str(recording), times=times)

    outcomes = [
        result("right", "ma1", "ma1", "妈", "马"),
        result("long", "ma1 ma1 ma1 ni3", "ma3 ma1 ma1 ni3"),
        result("short", "ma1", "ma3"),
        result("worst", "ma1 ma1 ma1 ni3", "ma3 ma3"),
        result("another", "ma1", "ma3"),
    ]
    order = ["worst", "another", "short", "long"]
    assert [outcomes[at].id for at in most_errors(outcomes, SYLLABLES, 9)] == order
    assert [outcomes[at].id for at in most_errors(outcomes, HANZI, 9)] == ["right"]
    found = collect_evidence(outcomes, SYLLABLES, lambda _: inspection, examples=2)
    assert [outcomes[at].id for at in found] == order[:2]
    assert all(evidence.sound and evidence.picture for evidence in found.values())


def test_utterances_of_two_lists_with_one_id_keep_their_recordings(recording, inspection, tmp_path):
    write_wav(tmp_path / "other.wav", burst()[: RATE // 2], RATE)
    outcomes = [
        outcome("ni3 ma1", "ni3 ma3", ((0.1, 0.2), (0.2, 0.4)), audio=str(audio))
        for audio in (recording, tmp_path / "other.wav")
    ]
    found = collect_evidence(outcomes, SYLLABLES, lambda _: inspection)
    assert {position: evidence.seconds for position, evidence in found.items()} == {0: SECONDS, 1: 0.5}
