"""Tests of live recognition (windowed_stream.py, endpoints.py, partial_results.py) with the shipped model."""

import io
import itertools

import numpy as np
import pytest

from recognition.confidence import load_calibration
from recognition.endpoints import LONGEST_FRAMES, PAUSE_FRAMES, Endpointer
from recognition.loading import load_acoustic_logits, load_live_stream
from recognition.partial_results import common_syllables
from recognition.recognizer import Recognizer
from recognition.voice_activity import FRAME_SECONDS
from recognition.windowed_stream import CHECK_SECONDS, NOISE_SECONDS, SHARE, WINDOW_SECONDS, WindowedStream
from streaming.speech.recognizer import StreamRecognizer
from tests.support.recordings import RECORDINGS
from utils.audio.reading import read_audio
from utils.features.speech import FeatureConfig
from utils.hypotheses.live_text import LiveText
from utils.hypotheses.recognition import Alternative, Ending, Partial, Segment
from utils.run_folder.run import PRETRAINED_SPEECH
from utils.vocabulary import BLANK, SPACE, Vocabulary

RATE = 16_000


def noise(seconds: float, level: float = 1e-4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, level, round(seconds * RATE)).astype(np.float32)


@pytest.fixture(scope="module")
def recognizer() -> Recognizer:
    calibration = load_calibration(PRETRAINED_SPEECH)
    return Recognizer(load_acoustic_logits(PRETRAINED_SPEECH), calibration=calibration)


@pytest.fixture(scope="module")
def talk() -> np.ndarray:
    """All recordings, with pauses between them."""
    sounds = [read_audio(path) for path in RECORDINGS]
    return np.concatenate([noise(1.5), *itertools.chain(*((sound, noise(1.5)) for sound in sounds))])


@pytest.fixture(scope="module")
def events(recognizer, talk) -> list[Partial | Segment]:
    """The events of the recordings, fed in pieces of 0.1 s."""
    stream = WindowedStream(recognizer)
    pieces = (talk[start : start + 1600] for start in range(0, len(talk), 1600))
    return [event for piece in pieces for event in stream.feed(piece)] + stream.flush()


def test_pieces_of_any_length_give_the_same_events(recognizer, talk, events):
    stream = WindowedStream(recognizer)
    stream.feed(talk[: 3 * RATE])
    stream.flush()  # a reset must clear this
    rng, found, start = np.random.default_rng(0), [], 0
    while start < len(talk):
        size = int(rng.integers(0, rng.choice([2, 700, 40_000])))
        found += stream.feed(talk[start : start + size])
        start += size
    assert found + stream.flush() == events
    segments = [event for event in events if isinstance(event, Segment)]
    assert len(segments) == len(RECORDINGS)
    assert all(left.end <= right.start for left, right in itertools.pairwise(segments))


def test_segments_are_those_of_the_recogniser_for_the_same_samples(recognizer, talk, events):
    segments = [event for event in events if isinstance(event, Segment)]
    for segment in segments:
        samples = talk[round(segment.start * RATE) : round(segment.end * RATE)]
        (alone,) = recognizer.recognise([("alone", samples)])
        assert alone.pinyin == segment.best.pinyin and alone.confidence == segment.confidence
        assert np.allclose(np.array(alone.times) + segment.start, segment.times)
    stream = WindowedStream(recognizer)
    rare = stream.feed(talk, behind=True) + stream.flush()
    assert [event for event in rare if isinstance(event, Segment)] == segments
    assert len(rare) < len(events) / 2


def test_partial_results_appear_during_speech_and_approach_the_segment(events):
    partials: list[Partial] = []
    kept = stable = 0
    for event in events:
        if isinstance(event, Partial):
            assert len(event.pinyin) == len(event.times) == len(event.confidence) >= event.stable
            partials.append(event)
            continue
        final = event.best.pinyin
        halfway = partials[len(partials) // 2]
        assert len(partials) >= len(final) / 2
        assert halfway.end < event.end - 0.5 and len(halfway.pinyin) > len(final) / 4
        assert abs(len(partials[-1].pinyin) - len(final)) <= 1
        stable += sum(partial.stable for partial in partials)
        kept += sum(
            min(partial.stable, common_syllables([partial.pinyin, later.pinyin]))
            for partial, later in itertools.pairwise(partials)
        )
        partials = []
    assert stable > 40 and kept > 0.6 * stable


def test_a_partial_result_of_a_long_utterance_computes_one_window(recognizer):
    computed: list[int] = []

    class Counting:
        features, vocabulary = recognizer.acoustic.features, recognizer.acoustic.vocabulary
        frame_seconds = recognizer.acoustic.frame_seconds

        def logits(self, features):
            computed.append(len(features[0]))
            return recognizer.acoustic.logits(features)

    sound = read_audio(RECORDINGS[0])
    stream = WindowedStream(Recognizer(Counting()))
    long = np.concatenate([sound[RATE : 4 * RATE]] * 4)
    events = stream.feed(np.concatenate([noise(1.0), long]))
    assert max(computed) < (WINDOW_SECONDS + 0.1) / Counting.features.hop_seconds
    longest = max(
        (event for event in events if isinstance(event, Partial)), key=lambda partial: len(partial.pinyin)
    )
    (whole,) = recognizer.recognise([("whole", long)])
    assert longest.end > 10 and len(longest.pinyin) > 0.7 * len(whole.pinyin)
    assert sum(computed) / 100 < SHARE * (1 + len(long) / RATE)  # the bound of the module's docstring


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


def test_silence_needs_no_model():
    stream = WindowedStream(Recognizer(Mute()))
    assert stream.feed(np.zeros(10 * RATE, np.float32)) + stream.feed(noise(20)) == []
    assert stream.flush() == []


def test_noise_without_a_syllable_is_dropped_but_for_its_end():
    deaf = Mute(hears=True)
    stream = WindowedStream(Recognizer(deaf))
    assert stream.feed(np.concatenate([noise(2), bursts(0, 16), noise(2)])) + stream.flush() == []
    assert 0 < max(deaf.computed) <= 570  # 5.6 s: a check after 4 s, and one earlier


def test_noise_is_dropped_where_frames_are_shorter_than_20_ms():
    """At 11,025 Hz a frame has 220 samples, 19.95 ms; after an hour this adds up to 8 s."""
    deaf = Mute(hears=True)
    deaf.features = FeatureConfig(sample_rate=11_025)
    stream = WindowedStream(Recognizer(deaf))
    endpoints = stream._endpoints
    endpoints.frames = endpoints._free = 60 * 60 * 50
    stream._origin = endpoints.frames * endpoints.frame_samples
    assert stream.feed(np.concatenate([noise(2), bursts(0, 10)])) == []
    assert endpoints.frames - endpoints.first <= (NOISE_SECONDS + CHECK_SECONDS) / FRAME_SECONDS


def test_a_clip_of_one_syllable_is_recognised_at_its_end(recognizer):
    sound = read_audio(RECORDINGS[2])[round(0.4 * RATE) : round(1.3 * RATE)]
    stream = WindowedStream(recognizer)
    (segment,) = (event for event in stream.feed(sound) + stream.flush() if isinstance(event, Segment))
    assert (segment.start, segment.end) == (0, 0.9)
    assert stream.flush() == []


def test_a_partial_result_without_speech_is_withdrawn(recognizer, talk):
    class Deaf(Recognizer):
        def recognise_pieces(self, pieces):
            return [[] for _ in pieces]

    stream = WindowedStream(Deaf(recognizer.acoustic))
    events = stream.feed(talk) + stream.flush()
    assert [event.pinyin for event in events].count(()) >= len(RECORDINGS)
    assert events[-1].pinyin == () and not any(isinstance(event, Segment) for event in events)


def test_the_loader_chooses_the_stream_and_the_recognizer_runs_it(recognizer):
    shown: list[Partial | Segment] = []
    live = StreamRecognizer(load_live_stream(PRETRAINED_SPEECH, recognizer), shown.append)
    found = {name: list(events) for name, events in live.segments((path.name, path) for path in RECORDINGS)}
    assert [len(events) for events in found.values()] == [2] * len(RECORDINGS)
    assert any(isinstance(event, Partial) for event in shown)
    assert "looking ahead 400 ms" in live.speed()


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


# Endpoints


def bursts(*seconds: float) -> np.ndarray:
    """Noise alternately faint and loud; the loud noise is as uneven as speech."""
    pieces = []
    for index, length in enumerate(seconds):
        sound = noise(length, seed=index)
        if index % 2:
            swing = np.abs(np.sin(np.arange(len(sound)) * (2 * np.pi / RATE))) ** 4
            sound += noise(length, 0.1, seed=index + 100) * swing.astype(np.float32)
        pieces.append(sound)
    return np.concatenate(pieces)


def utterances_of(samples: np.ndarray) -> tuple[list[tuple[float, float]], Endpointer]:
    endpointer, found = Endpointer(RATE), []
    for start in range(0, len(samples), endpointer.step_samples):
        found.append(endpointer.feed(samples[start : start + endpointer.step_samples]))
    return [(first * 0.02, end * 0.02) for first, end in filter(None, found)], endpointer


def test_utterances_end_with_a_pause_and_keep_a_margin():
    found, endpointer = utterances_of(bursts(2, 3, 1.5, 2, 2))
    assert [len(found), endpointer.first] == [2, None]
    assert found[0] == (pytest.approx(2.0, abs=0.4), pytest.approx(5.0, abs=0.5))
    assert found[1] == (pytest.approx(6.5, abs=0.4), pytest.approx(8.5, abs=0.5))


def test_a_short_pause_ends_no_utterance_and_one_that_begins_at_once_is_whole():
    ((start, end),), _ = utterances_of(bursts(0.0, 3, 0.3, 2, 1.5))
    assert start == pytest.approx(0, abs=0.3) and end == pytest.approx(5.3, abs=0.5)


def test_an_endless_utterance_is_cut():
    found, endpointer = utterances_of(bursts(1, 65, 0.2))
    assert len(found) >= 3 and endpointer.first is not None
    assert all(end - start <= LONGEST_FRAMES * 0.02 for start, end in found)
    assert all(left[1] == pytest.approx(right[0]) for left, right in itertools.pairwise(found))


def _syllables(seconds: float) -> np.ndarray:
    """Bursts of 0.25 s with faint sound of 0.07 s between them."""
    burst = np.concatenate([noise(0.25, 0.1), noise(0.07, 1e-3)])
    return np.tile(burst, round(seconds / 0.32))


@pytest.mark.parametrize("shift", range(5))
def test_an_endless_utterance_is_cut_at_its_quietest_point(shift):
    """Wherever it begins: a step has five frames, so its length need not be a multiple of steps."""
    lead = [noise(1 + 0.02 * shift), _syllables(15.36)]
    sound = np.concatenate([*lead, noise(0.08, 1e-5), _syllables(8), noise(2)])
    quiet = sum(map(len, lead)) / RATE
    (_, end), *_ = utterances_of(sound)[0]
    assert quiet - 0.03 <= end <= quiet + 0.11


def test_after_a_cut_in_mid_speech_all_rows_of_the_new_utterance_are_computed(recognizer):
    sound = [read_audio(path) for path in RECORDINGS]
    short = noise(0.3, 3e-4)
    talk = np.concatenate([noise(1.0), *[part for each in sound * 3 for part in (each, short)], noise(1.0)])
    stream = WindowedStream(recognizer)
    logits, frame = stream._logits, recognizer.acoustic.frame_seconds
    missing = []

    def counted(start, now):
        rows = logits(start, now)
        missing.append((now - start) / RATE / frame - len(rows))
        return rows

    stream._logits = counted
    stream.feed(talk, behind=True)
    assert len(missing) > 10 and max(map(abs, missing)) <= 2


def test_without_a_frame_there_is_no_endpoint():
    endpointer = Endpointer(RATE)
    assert endpointer.feed(np.zeros(10, np.float32)) is None and endpointer.frames == 0
    assert pytest.approx(0.8) == PAUSE_FRAMES * 0.02


# Text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def partial(pinyin: str, stable: int = 0) -> Partial:
    return Partial(0.0, 1.0, tuple(pinyin.split()), stable=stable)


def segment_of(pinyin: str) -> Segment:
    return Segment(0.0, 1.0, (), (Alternative(tuple(pinyin.split()), "", 0.0),))


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
