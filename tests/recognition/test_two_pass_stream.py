"""Tests of live recognition in two passes: partial results, then segments; with the shipped models."""

import io
import itertools

import numpy as np
import pytest

from model_speech.acoustic_logits import load_acoustic_logits
from model_speech.ctc.decoder import greedy_decode
from recognition.confidence import load_calibration
from recognition.live.loading import load_first_pass, load_live_stream
from recognition.live.partial_results import common_syllables
from recognition.live.two_pass_stream import NOISE_SECONDS, FirstPass, TwoPassStream
from recognition.recognizer import Recognizer
from recognition.syllables import spoken
from streaming.speech.recognizer import StreamRecognizer
from streaming.speech.stream import SpeechStream
from tests.support.recordings import RECORDINGS
from utils.audio.reading import read_audio
from utils.features.settings import FeatureConfig
from utils.features.speech import extract_features
from utils.hypotheses.live import LiveText
from utils.hypotheses.recognition import Alternative, Ending, Recognition
from utils.run_folder.run import PRETRAINED_SPEECH, PRETRAINED_STREAMING
from utils.vocabulary import BLANK, SPACE, Vocabulary

RATE = 16_000


def noise(seconds: float, level: float = 1e-4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, level, round(seconds * RATE)).astype(np.float32)


@pytest.fixture(scope="module")
def recognizer() -> Recognizer:
    calibration = load_calibration(PRETRAINED_SPEECH)
    return Recognizer(load_acoustic_logits(PRETRAINED_SPEECH), calibration=calibration)


@pytest.fixture(scope="module")
def small(recognizer) -> Recognizer:
    """The streaming model."""
    return load_first_pass(recognizer)


@pytest.fixture
def stream(recognizer, small) -> TwoPassStream:
    return load_live_stream(PRETRAINED_SPEECH, recognizer, small)


@pytest.fixture(scope="module")
def talk() -> np.ndarray:
    """All recordings, with pauses between them."""
    sounds = [read_audio(path) for path in RECORDINGS]
    return np.concatenate([noise(1.5), *itertools.chain(*((sound, noise(1.5)) for sound in sounds))])


@pytest.fixture(scope="module")
def events(recognizer, small, talk) -> list[Recognition]:
    """The events of the recordings, fed in pieces of 0.1 s."""
    stream = load_live_stream(PRETRAINED_SPEECH, recognizer, small)
    pieces = (talk[start : start + 1600] for start in range(0, len(talk), 1600))
    return [event for piece in pieces for event in stream.feed(piece)] + stream.flush()


def segments_of(events: list[Recognition]) -> list[Recognition]:
    return [event for event in events if event.is_final]


def test_pieces_of_any_length_give_the_same_segments(stream, talk, events):
    stream.feed(talk[: 3 * RATE])
    stream.flush()  # a reset must clear this
    rng, found, start = np.random.default_rng(0), [], 0
    while start < len(talk):
        size = int(rng.integers(0, rng.choice([2, 700, 40_000])))
        found += stream.feed(talk[start : start + size], behind=bool(rng.integers(2)))
        start += size
    segments = segments_of(found + stream.flush())
    assert segments == segments_of(events) and len(segments) >= len(RECORDINGS)
    assert all(left.end <= right.start for left, right in itertools.pairwise(segments))
    assert segments[0].start >= 0 and segments[-1].end <= len(talk) / RATE
    assert all(one.start <= start < end <= one.end for one in segments for start, end in one.times)


def test_segments_are_those_of_a_recording_of_the_same_samples(recognizer, talk, events):
    whole = [event for _, found in recognizer.segments([("talk", talk)]) for event in found]
    assert [segment for segment in whole[:-1] if segment.times] == segments_of(events)
    for segment in segments_of(events):
        samples = talk[round(segment.start * RATE) : round(segment.end * RATE)]
        (found,) = recognizer.recognise_pieces([recognizer.piece(segment.start, samples)])
        assert found == [segment]


def test_partial_results_are_those_of_the_streaming_model_and_approach_the_segment(small, talk, events):
    partials: list[Recognition] = []
    for event in events:
        if not event.is_final:
            assert len(event.pinyin) == len(event.times) == len(event.confidence) == event.stable
            assert event.start <= event.times[0][0] and event.times[-1][1] <= event.end
            partials.append(event)
            continue
        assert all(
            left.pinyin == right.pinyin[: len(left.pinyin)] for left, right in itertools.pairwise(partials)
        )
        last = partials[-1]
        samples = talk[round(last.start * RATE) : round(last.end * RATE)]
        logits, lengths = small.acoustic.logits([extract_features(samples, small.acoustic.features)])
        (hypothesis,) = greedy_decode(logits, lengths, small.acoustic.vocabulary.blank_index)
        assert common_syllables([last.pinyin, spoken(hypothesis, small.acoustic.vocabulary)[0]]) == len(
            last.pinyin
        )
        assert last.end < event.end + 0.9 and len(last.pinyin) > 0.5 * len(event.best.pinyin)
        partials = []


class Mute:
    """An acoustic model that recognises blanks only, or that must not be called."""

    features = FeatureConfig()
    vocabulary = Vocabulary(("ma1", SPACE, BLANK))
    frame_seconds = 0.08

    def __init__(self, hears: bool = False):
        self.hears, self.computed = hears, []

    def logits(self, features):
        assert self.hears
        self.computed.append(len(features[0]))
        rows = -(-len(features[0]) // 8)
        return np.tile(np.float32([0, 0, 9]), (1, rows, 1)), np.array([rows])


class Rows:
    """A stream of logits with a row every 80 ms: a syllable in its first ``spoken`` rows, then blanks."""

    look_ahead_seconds = 0.0

    def __init__(self, spoken: int):
        self._spoken, self.fed = spoken, 0

    def reset(self):
        self._samples = self._rows = 0

    def feed(self, samples):
        self.fed, self._samples = self.fed + len(samples), self._samples + len(samples)
        first, self._rows = self._rows, self._samples // 1280
        rows = np.tile(np.float32([0, 0, 9]), (self._rows - first, 1))
        rows[: max(0, self._spoken - first)] = [9, 0, 0]
        return rows


def uneven(seconds: float) -> np.ndarray:
    """Noise as uneven as speech, in which no pause can be found by its level."""
    swing = np.abs(np.sin(np.arange(round(seconds * RATE)) * (2 * np.pi / RATE))) ** 4
    return noise(seconds, 0.1) * swing.astype(np.float32)


def test_silence_needs_no_model():
    recognizer, rows = Recognizer(Mute()), Rows(0)
    stream = TwoPassStream(recognizer, FirstPass(rows, recognizer))
    assert stream.feed(np.zeros(10 * RATE, np.float32)) + stream.feed(noise(20)) == []
    assert stream.flush() == [] and rows.fed == 0


def test_noise_without_a_syllable_is_dropped_but_for_its_end():
    deaf = Mute(hears=True)
    recognizer = Recognizer(deaf)
    stream = TwoPassStream(recognizer, FirstPass(Rows(0), recognizer))
    sound = np.concatenate([noise(2), uneven(16), noise(2)])
    assert stream.feed(sound) + stream.flush() == []
    assert 0 < max(deaf.computed) <= 100 * (NOISE_SECONDS + 1)


def test_an_utterance_ends_where_the_first_pass_finds_no_more_syllables(recognizer):
    """In noise that hides the pause; the partial result is withdrawn, because the second pass finds none."""
    deaf = Recognizer(Mute(hears=True))
    stream = TwoPassStream(deaf, FirstPass(Rows(10), deaf))
    shown, withdrawn = stream.feed(np.concatenate([noise(2), uneven(3.5)]))[:2]
    assert shown.pinyin == ("ma1",) and withdrawn.pinyin == () and withdrawn.start == shown.start
    assert withdrawn.end < shown.start + 3.5


def test_a_clip_of_one_syllable_is_recognised_at_its_end(stream):
    sound = read_audio(RECORDINGS[2])[round(0.4 * RATE) : round(1.3 * RATE)]
    (segment,) = segments_of(stream.feed(sound) + stream.flush())
    assert 0 <= segment.start < segment.end <= 0.9
    assert stream.flush() == []


def test_without_a_first_pass_there_are_no_partial_results(recognizer, talk, events):
    stream = load_live_stream(PRETRAINED_SPEECH, recognizer, None)
    assert stream.feed(talk) + stream.flush() == segments_of(events)
    assert stream.look_ahead_seconds == pytest.approx(0.8)


def test_a_model_of_another_sample_rate_has_no_first_pass():
    other = Mute()
    other.features = FeatureConfig(sample_rate=8_000)
    assert load_first_pass(Recognizer(other)) is None


def test_the_streaming_model_alone_needs_one_pass(small, talk):
    stream = load_live_stream(PRETRAINED_STREAMING, small, None)
    assert isinstance(stream, SpeechStream) and segments_of(stream.feed(talk))


def test_the_recognizer_runs_the_stream(stream):
    shown: list[Recognition] = []
    live = StreamRecognizer(stream, shown.append)
    found = {name: list(events) for name, events in live.segments((path.name, path) for path in RECORDINGS)}
    assert all(len(events) >= 2 and isinstance(events[-1], Ending) for events in found.values())
    assert f"looking ahead {1000 * stream.look_ahead_seconds:.0f} ms" in live.speed()


class Counting:
    """A stream that notes the samples of each call, and whether more are waiting."""

    sample_rate = RATE
    look_ahead_seconds = 0.0

    def __init__(self):
        self.fed: list[tuple[int, bool]] = []

    def reset(self):
        pass

    def feed(self, samples, behind=False):
        self.fed.append((len(samples), behind))
        return []

    def flush(self):
        return []


def test_live_audio_that_has_been_waiting_gets_no_partial_results_but_the_last():
    """So that a machine that is slower than the microphone catches up."""
    stream = Counting()
    for on_event in (print, None):
        live = StreamRecognizer(stream, on_event)
        blocks = [noise(0.08), noise(0.24)]
        for _, events in live.segments([("microphone", blocks)]):
            assert [type(event) for event in events] == [Ending]
    lengths = [1280, 1600, 1600, 640]
    assert stream.fed[:4] == list(zip(lengths, [False, True, True, False], strict=True))
    assert stream.fed[4:] == [(length, True) for length in lengths]


# Text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def partial(pinyin: str, stable: int = 0) -> Recognition:
    n_best = (Alternative(tuple(pinyin.split()), "", 0.0),)
    return Recognition(0.0, 1.0, n_best=n_best, is_final=False, stable=stable)


def segment_of(pinyin: str) -> Recognition:
    return Recognition(0.0, 1.0, (), (Alternative(tuple(pinyin.split()), "", 0.0),))


def test_a_terminal_shows_each_partial_result_in_place_of_the_last(monkeypatch):
    monkeypatch.setenv("COLUMNS", "12")
    out = Terminal()
    text = LiveText(out)
    for event in (partial("ni3"), partial("ni2 hao3"), partial("ni2 hao3 ma5 ni3"), segment_of("ni3 hao3")):
        text.show(event)
    assert out.getvalue().split("\r\x1b[K") == ["", "ni3", "ni2 hao3", "…o3 ma5 ni3", ""]


def test_a_pipe_gets_a_line_for_each_utterance():
    out = io.StringIO()
    text = LiveText(out)
    events = (partial("ni3"), partial("ni3 hao3", 1), partial("ni3 hao3 ma1", 2), segment_of("ni3 hao3 ma5"))
    for event in (*events, partial("wo3 de5", 1), segment_of("wo2 de5"), partial("a1"), partial("")):
        text.show(event)
    assert out.getvalue() == "ni3 hao3 ma5 \nwo3 \nwo2 de5 \n"
