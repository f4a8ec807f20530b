"""Tests of utils/audio/padding.py: silence is added beside speech; the times of syllables allow for it."""

from difflib import SequenceMatcher

import numpy as np
import pytest

from model_speech.acoustic_logits import load_acoustic_logits
from recognition.inspection import inspection_of
from recognition.phrases.grammar import parse_grammar
from recognition.phrases.phrase_list import list_phrases
from recognition.phrases.search import PhraseSearch
from recognition.recognizer import Recognizer
from tests.support.recordings import RECORDING, RECORDINGS
from utils.audio.padding import LEAST_SECONDS, PAUSE_SECONDS, trim_pauses, with_pauses
from utils.audio.reading import SAMPLE_RATE, read_audio
from utils.metrics import count_errors, total
from utils.run_folder.run import PRETRAINED_SPEECH


def tone(before: float, after: float, seconds: float = 0.5) -> np.ndarray:
    """A tone between pauses."""
    samples = np.sin(0.3 * np.arange(round(seconds * SAMPLE_RATE)))
    return np.pad(samples, (round(before * SAMPLE_RATE), round(after * SAMPLE_RATE))).astype(np.float32)


def cut(samples: np.ndarray) -> tuple[np.ndarray, float]:
    """A recording without its pauses, and the seconds that were cut off before it."""
    loud = np.flatnonzero(np.abs(samples) > 0.03 * np.abs(samples).max())
    return samples[loud[0] : loud[-1]], loud[0] / SAMPLE_RATE


@pytest.mark.parametrize("before", [0.0, 0.05, 0.11, 0.5])
@pytest.mark.parametrize("after", [0.0, 0.5])
def test_a_short_pause_becomes_longer_and_a_long_one_stays(before, after):
    samples = tone(before, after)
    padded, added = with_pauses(samples, SAMPLE_RATE)
    first, last = np.flatnonzero(padded)[[0, -1]]
    expected = [PAUSE_SECONDS if pause < LEAST_SECONDS else pause for pause in (before, after)]
    found = (first / SAMPLE_RATE, (len(padded) - last) / SAMPLE_RATE)
    assert found == pytest.approx(expected, abs=0.016)  # a block and half of the smoothing
    start = round(added * SAMPLE_RATE)
    np.testing.assert_array_equal(padded[start : start + len(samples)], samples)
    assert padded.dtype == np.float32


@pytest.mark.parametrize("samples", [np.zeros(SAMPLE_RATE, np.float32), np.ones(300), np.zeros(0)])
def test_silence_and_a_very_short_sound_stay(samples):
    padded, added = with_pauses(samples, SAMPLE_RATE)
    assert padded is samples and added == 0.0


def test_a_click_does_not_hide_the_sound():
    samples = 0.01 * tone(0.5, 0.0)
    samples[:48] = 0.9  # 3 ms
    padded, _ = with_pauses(samples, SAMPLE_RATE)
    added = (len(padded) - np.flatnonzero(padded)[-1]) / SAMPLE_RATE
    assert added == pytest.approx(PAUSE_SECONDS, abs=0.016)
    for seed in range(20):
        trimmed = trim_pauses(samples, SAMPLE_RATE, np.random.default_rng(seed))
        np.testing.assert_array_equal(trimmed[-SAMPLE_RATE // 2 :], samples[-SAMPLE_RATE // 2 :])


def test_a_recording_without_pauses_is_recognised_like_one_with_pauses():
    recognizer = Recognizer(load_acoustic_logits(PRETRAINED_SPEECH))
    distances, errors = [], []
    for path in RECORDINGS:
        samples = read_audio(path, SAMPLE_RATE)
        short, offset = cut(samples)
        whole, found = recognizer.recognise([("whole", samples), ("short", short)])
        assert found.seconds == len(short) / SAMPLE_RATE
        assert found.times[0][0] >= 0.0 and found.times[-1][1] <= found.seconds
        assert found.pinyin[0] == whole.pinyin[0]  # without the added silence, one of the three is lost
        errors.append(count_errors(whole.pinyin, found.pinyin))
        middles = [np.mean(result.times, axis=1) for result in (whole, found)]
        same = SequenceMatcher(None, whole.pinyin, found.pinyin, autojunk=False).get_matching_blocks()
        pairs = [(block.a + i, block.b + i) for block in same for i in range(block.size)]
        distances += [middles[1][short] + offset - middles[0][long] for long, short in pairs]
    assert total(errors).rate < 0.2
    assert np.abs(distances).max() < 0.2 and np.abs(np.median(distances)) < 0.03


def test_the_times_of_a_phrase_stay_within_a_recording_without_pauses():
    acoustic = load_acoustic_logits(PRETRAINED_SPEECH)
    phrases = PhraseSearch(list_phrases(parse_grammar("如果无法控制\n无法控制")), acoustic.vocabulary)
    short, _ = cut(read_audio(RECORDING, SAMPLE_RATE))
    recognizer = Recognizer(acoustic, phrases=phrases)
    (found,) = [list(events) for _, events in recognizer.segments([("short", short)])]
    segment, ending = found
    assert segment.n_best[0].hanzi == "如果无法控制"
    assert segment.start == 0.0 and ending.seconds - 0.2 < segment.end <= ending.seconds
    assert all(0.0 <= start < end <= segment.end for start, end in segment.times)


def test_the_first_posteriors_of_a_recording_without_pauses_are_those_of_the_added_silence():
    samples = read_audio(RECORDING, SAMPLE_RATE)
    recognizer = Recognizer(load_acoustic_logits(PRETRAINED_SPEECH))
    assert 0.0 < inspection_of(recognizer, samples).start < 0.3  # the pause before it is shortened
    found = inspection_of(recognizer, cut(samples)[0])
    assert -PAUSE_SECONDS - found.frame_seconds <= found.start < -PAUSE_SECONDS / 2
    assert found.frames(np.array([-1.0, found.start, 0.0, 1e3])).tolist() == [
        *(0, 0, int(-found.start / found.frame_seconds), len(found.posteriors) - 1)
    ]
