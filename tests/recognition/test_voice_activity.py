"""Tests of endpoints and voice activity: no speech is lost, also in noise and beside digital silence."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recognition.voice_activity import (
    CONTEXT_FRAMES,
    FRAME_SECONDS,
    LONGEST_FRAMES,
    Endpointer,
    speech_stretches,
)
from tests.support.recordings import RECORDINGS
from utils.audio.reading import read_audio

RATE = 16_000


def noise(seconds: float, decibels: float, seed: int = 0) -> np.ndarray:
    """White noise of a level in decibels of full scale."""
    samples = np.random.default_rng(seed).normal(size=int(seconds * RATE))
    return (samples * 10 ** (decibels / 20)).astype(np.float32)


def voice(seconds: float, seed: int = 0) -> np.ndarray:
    """Harmonics of a varying pitch in syllables of 0.2 s with pauses, similar to a voice."""
    rng = np.random.default_rng(seed)
    time = np.arange(int(seconds * RATE)) / RATE
    knots = 0.3 * np.arange(int(seconds / 0.3) + 2)
    pitch = 150 + 40 * np.interp(time, knots, rng.random(len(knots)))
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    sound = sum(np.sin(n * phase) / n for n in range(1, 30))
    return (0.1 * sound * np.abs(np.sin(np.pi * time / 0.2))).astype(np.float32)


def blocks(samples: np.ndarray, size: int) -> list[np.ndarray]:
    return [samples[start : start + size] for start in range(0, len(samples), size)]


def borders(samples: np.ndarray, size: int = 100_000) -> list[tuple[float, float]]:
    """(start, end) of each stretch in seconds."""
    found = list(speech_stretches(blocks(samples, size), RATE))
    for stretch in found:
        np.testing.assert_array_equal(stretch.samples, samples[stretch.start :][: len(stretch.samples)])
    return [(stretch.start / RATE, (stretch.start + len(stretch.samples)) / RATE) for stretch in found]


@pytest.fixture(scope="module")
def talk() -> np.ndarray:
    """70 s of noise with speech at 2-7, 9-10, 11-15 and 40-55 s."""
    samples = noise(70, -60)
    for number, (start, end) in enumerate(((2, 7), (9, 10), (11, 15), (40, 55))):
        samples[start * RATE : end * RATE] += voice(end - start, seed=number)
    return samples


def test_stretches_begin_and_end_with_the_speech(talk):
    found = borders(talk)
    assert [(round(start), round(end)) for start, end in found] == [(2, 7), (9, 10), (11, 15), (40, 55)]
    for (start, end), (begins, ends) in zip(found, ((2, 7), (9, 10), (11, 15), (40, 55)), strict=True):
        assert begins - 0.4 < start < begins and ends < end < ends + 0.4


@pytest.mark.parametrize("size", [160_000 - 1, 7_777, 2_000_000])
def test_blocks_make_no_difference(talk, size):
    assert borders(talk, size=size) == borders(talk)


@pytest.mark.parametrize(
    "samples",
    [np.zeros(30 * RATE, np.float32), noise(30, -20), noise(30, -70), 0.3 + np.zeros(30 * RATE, np.float32)],
    ids=["zeros", "loud noise", "faint noise", "offset"],
)
def test_without_speech_there_are_no_stretches(samples):
    assert borders(samples) == []


def test_a_noise_that_begins_is_speech_for_some_seconds_at_most():
    samples = np.concatenate([noise(30, -70), noise(60, -30, seed=1)])
    found = borders(samples)
    assert sum(end - start for start, end in found) < 2 + CONTEXT_FRAMES * FRAME_SECONDS
    samples[80 * RATE : 84 * RATE] += voice(4)  # 10 dB above the noise
    assert [(round(start), round(end)) for start, end in borders(samples)[len(found) :]] == [(80, 84)]


def test_speech_without_a_pause_is_cut_where_it_is_quietest():
    samples = voice(45)
    quiet = [int(second * RATE) for second in (16.4, 29.0)]
    for quietest in quiet:
        samples[quietest : quietest + RATE // 4] *= 0.05  # 0.25 s: not long enough for a pause
    found = borders(samples)
    assert found[0][0] == 0 and found[-1][1] == pytest.approx(45, abs=0.02)
    assert all(left[1] == right[0] for left, right in itertools.pairwise(found))
    assert all(end - start <= 20 for start, end in found)
    cuts = [end for _, end in found[:-1]]
    for quietest, cut in zip(quiet, cuts, strict=False):
        assert quietest / RATE <= cut <= quietest / RATE + 0.25


def test_memory_is_flat():
    """Each stretch is returned before another minute is read."""
    held = []

    def endless():
        for minute in range(5):
            held.append(minute)
            samples = noise(60, -60, seed=minute)
            samples[: 4 * RATE] += voice(4, seed=minute)
            yield samples

    starts = []
    for stretch in speech_stretches(endless(), RATE):
        starts.append((stretch.start / RATE, len(held)))
        assert len(stretch.samples) < 21 * RATE
    assert [round(start) for start, _ in starts] == [0, 60, 120, 180, 240]
    assert all(read <= start // 60 + 2 for start, read in starts)


@settings(max_examples=15)
@given(st.integers(0, 2**31), st.sampled_from([8000, 16_000, 44_100]), st.floats(0.001, 40))
def test_any_sound_gives_stretches_in_order(seed, rate, seconds):
    rng = np.random.default_rng(seed)
    samples = rng.normal(size=int(seconds * rate)) * rng.choice([0, 1e-4, 0.3], size=1)
    samples *= np.repeat(rng.random(int(seconds) + 1) < 0.5, rate)[: len(samples)]
    reached = 0
    for stretch in speech_stretches(blocks(samples, 50_000), rate):
        assert stretch.start >= reached and 0 < len(stretch.samples) <= 20.0 * rate
        reached = stretch.start + len(stretch.samples)
    assert reached <= len(samples)


# Digital silence


@pytest.fixture(scope="module")
def conversation() -> tuple[np.ndarray, list[int]]:
    """The recordings with pauses of 1.9 s in faint noise, and the start of each pause in samples."""
    parts, starts, length = [], [], 0
    for sound in (np.zeros(0, np.float32), *map(read_audio, RECORDINGS)):
        starts.append(length + len(sound))
        parts += [sound, np.zeros(round(1.9 * RATE), np.float32)]
        length = starts[-1] + len(parts[-1])
    return np.concatenate(parts) + noise(length / RATE, -60)[:length], starts


def zeros(count: int) -> np.ndarray:
    return np.zeros(count, np.float32)


def rounding(count: int) -> np.ndarray:
    """What a dithered 16-bit file has where there is no sound."""
    return np.random.default_rng(1).integers(-1, 2, count).astype(np.float32) / 32768


@pytest.mark.parametrize("gap", [zeros, rounding])
@pytest.mark.parametrize(("after", "seconds"), [(0.0, 0.5), (0.7, 0.5), (1.2, 0.5), (0.2, 1.5)])
def test_digital_silence_in_a_pause_does_not_join_utterances(conversation, gap, after, seconds):
    samples, pauses = conversation
    samples = samples.copy()
    for pause in pauses:
        part = slice(pause + round(after * RATE), pause + round((after + seconds) * RATE))
        samples[part] = gap(len(samples[part]))
    found = [span for span in borders(samples) if span[0] > 0.5]  # sound before the first gap may be speech
    assert len(found) == len(RECORDINGS)
    for (start, end), (before, following) in zip(found, itertools.pairwise(pauses), strict=True):
        assert before / RATE + 1.6 < start and start + 2 < end < following / RATE + 0.3


def test_a_muted_call_is_silent(conversation):
    samples, pauses = conversation
    muted = np.concatenate([part for part in np.split(samples, pauses) for part in (part, zeros(6 * RATE))])
    spoken = sum(end - start for start, end in borders(samples))
    found = borders(muted)
    assert sum(end - start for start, end in found) < spoken + 2.0 * len(RECORDINGS)
    assert all(end - start < 7 for start, end in found)


def test_a_word_between_digital_silence_is_whole():
    word = voice(0.4)
    ((start, end),) = borders(np.concatenate([zeros(10 * RATE), word, zeros(10 * RATE)]))
    assert start < 10.05 and end > 10.35


@pytest.mark.parametrize("samples", [0.15, 0.5, 1.3, 6.007])
def test_a_stretch_ends_with_the_recording(samples):
    sound = voice(samples)
    ((start, end),) = borders(sound)
    assert (start, end) == (0.0, pytest.approx(samples, abs=0.021)) and end <= len(sound) / RATE


# Endpoints


def bursts(*seconds: float) -> np.ndarray:
    """Noise alternately faint and loud; the loud noise is as uneven as speech."""
    pieces = []
    for index, length in enumerate(seconds):
        sound = noise(length, -80, seed=index)
        if index % 2:
            swing = np.abs(np.sin(np.arange(len(sound)) * (2 * np.pi / RATE))) ** 4
            sound += noise(length, -20, seed=index + 100) * swing.astype(np.float32)
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
    burst = np.concatenate([noise(0.25, -20), noise(0.07, -60)])
    return np.tile(burst, round(seconds / 0.32))


@pytest.mark.parametrize("shift", range(5))
def test_an_endless_utterance_is_cut_at_its_quietest_point(shift):
    """Wherever it begins: a step has five frames, so its length need not be a multiple of steps."""
    lead = [noise(1 + 0.02 * shift, -80), _syllables(15.36)]
    sound = np.concatenate([*lead, noise(0.08, -100), _syllables(8), noise(2, -80)])
    quiet = sum(map(len, lead)) / RATE
    (_, end), *_ = utterances_of(sound)[0]
    assert quiet - 0.03 <= end <= quiet + 0.11


def test_a_click_is_no_utterance():
    samples = noise(5, -60)
    samples[2 * RATE : 2 * RATE + 160] += 0.5
    assert utterances_of(samples)[0] == []
