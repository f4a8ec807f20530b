"""Tests of voice activity detection: no speech is lost, in blocks of any size and in noise."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recognition.voice_activity import (
    FRAME_SECONDS,
    LARGEST_DB,
    _Search,
    band_levels,
    speech_scores,
    speech_stretches,
    whole_or_stretches,
)
from utils.audio.reading import read_audio

RATE = 16_000
SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "audio"


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


def borders(samples: np.ndarray, size: int = 100_000, **options) -> list[tuple[float, float]]:
    """(start, end) of each stretch in seconds."""
    found = list(speech_stretches(blocks(samples, size), RATE, **options))
    for stretch in found:
        np.testing.assert_array_equal(stretch.samples, samples[stretch.start :][: len(stretch.samples)])
    return [(stretch.start / RATE, (stretch.start + len(stretch.samples)) / RATE) for stretch in found]


@pytest.fixture(scope="module")
def talk() -> np.ndarray:
    """70 s of noise with speech at 2-7, 9-10, 11-15 and 40-60 s."""
    samples = noise(70, -60)
    for number, (start, end) in enumerate(((2, 7), (9, 10), (11, 15), (40, 60))):
        samples[start * RATE : end * RATE] += voice(end - start, seed=number)
    return samples


def test_stretches_begin_and_end_with_the_speech(talk):
    found = borders(talk, longest=30.0)
    assert [(round(start), round(end)) for start, end in found] == [(2, 7), (9, 10), (11, 15), (40, 60)]
    for (start, end), (begins, ends) in zip(found, ((2, 7), (9, 10), (11, 15), (40, 60)), strict=True):
        assert begins - 0.4 < start < begins and ends < end < ends + 0.4


def test_stretches_do_not_overlap_after_a_cut_in_a_pause():
    """Speech in frames 0 to 975 and from 1001 on. The cut is where it is quietest, late in the pause."""
    spoken = np.zeros(1100, bool)
    spoken[:976] = spoken[1001:1060] = True
    power = np.where(spoken, 1.0, 1e-6)
    power[976:1001] *= np.linspace(2.0, 0.5, 25)
    search = _Search(1, 1000)
    search.append(np.arange(1100, dtype=np.float32), power)
    found = [*search.advance(10.0 * spoken), *search.finish()]
    ends = [stretch.start + len(stretch.samples) for stretch in found]
    assert len(found) == 2 and found[0].start == 0
    assert ends[0] <= found[1].start <= 1001 and ends[1] >= 1060


@pytest.mark.parametrize("size", [160_000 - 1, 7_777, 2_000_000])
def test_blocks_make_no_difference(talk, size):
    assert borders(talk, size=size) == borders(talk)


def test_scores_of_the_whole_are_those_of_the_parts(talk):
    levels = band_levels(talk, RATE)
    scores = speech_scores(levels)
    assert levels.shape == (3500, 20) and scores.shape == (3500,)
    assert scores.min() >= 0 and scores.max() <= LARGEST_DB
    spoken = np.zeros(3500, bool)
    for start, end in ((2, 7), (9, 10), (11, 15), (40, 60)):
        spoken[int(start / FRAME_SECONDS) : int(end / FRAME_SECONDS)] = True
    assert scores[spoken].mean() > 10 and np.percentile(scores[~spoken], 95) < 4


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
    assert sum(end - start for start, end in found) < 6
    samples[80 * RATE : 84 * RATE] += voice(4)  # 10 dB above the noise
    assert [(round(start), round(end)) for start, end in borders(samples)[len(found) :]] == [(80, 84)]


def test_a_doubtful_sound_of_the_longest_stretch_is_speech():
    """Every frame is the same, 5.5 dB louder for 3 s: above the noise, but not certainly."""
    frame = noise(FRAME_SECONDS, -50)
    samples = np.tile(frame, int(20 / FRAME_SECONDS))
    samples[10 * RATE : 13 * RATE] *= 10 ** (5.5 / 20)
    assert borders(samples) == [], "a shorter one is not"
    found = borders(samples, longest=2.0)
    assert found[0][0] < 10 and found[-1][1] > 13
    assert all(end == start for (_, end), (start, _) in itertools.pairwise(found))


def test_speech_without_a_pause_is_cut_where_it_is_quietest():
    samples = voice(45)
    quiet = [int(second * RATE) for second in (16.4, 29.0)]
    for quietest in quiet:
        samples[quietest : quietest + RATE // 4] *= 0.05  # 0.25 s: not long enough for a pause
    found = borders(samples, longest=20.0)
    assert found[0][0] == 0 and found[-1][1] == pytest.approx(45, abs=0.02)
    assert all(left[1] == right[0] for left, right in itertools.pairwise(found))
    assert all(end - start <= 20 for start, end in found)
    cuts = [end for _, end in found[:-1]]
    for quietest, cut in zip(quiet, cuts, strict=False):
        assert quietest / RATE <= cut <= quietest / RATE + 0.25


def test_a_short_recording_stays_whole():
    (stretch,) = whole_or_stretches(blocks(noise(5.0, -60), 7000), RATE, longest=5.0)
    assert stretch.start == 0 and len(stretch.samples) == 5 * RATE
    assert list(whole_or_stretches(blocks(noise(5.1, -60), 7000), RATE, longest=5.0)) == []
    assert list(whole_or_stretches([], RATE)) == []


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
    for stretch in speech_stretches(blocks(samples, 50_000), rate, longest=5.0):
        assert stretch.start >= reached and 0 < len(stretch.samples) <= 5.0 * rate
        reached = stretch.start + len(stretch.samples)
    assert reached <= len(samples)


@pytest.fixture(scope="module")
def clips() -> list[np.ndarray]:
    """Forty sentences of two speakers."""
    if not SHARED.is_dir():
        pytest.skip(f"no recordings under {SHARED}")
    paths = sorted((SHARED / "aishell1_two_speakers" / "wav").rglob("*.flac"))
    return [read_audio(path) for path in paths[:: len(paths) // 40]][:40]


def in_a_row(clips: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sentences with pauses of 1 to 3 s; which frames are loud speech, and which lie between sentences.

    Speech is what is within 30 dB of the sentence's loud frames, in the recording before anything is added.
    """
    rng = np.random.default_rng(0)
    parts, spoken, between = [], [], []
    for clip in clips:
        clip = clip[: len(clip) // 320 * 320]
        level = 10 * np.log10(band_levels(clip, RATE).sum(axis=1) + 1e-12)
        frames = int(rng.uniform(50, 150))
        parts += [clip, np.zeros(frames * 320, np.float32)]
        spoken += [level > np.percentile(level, 95) - 30, np.zeros(frames, bool)]
        between += [np.zeros(len(level), bool), np.ones(frames, bool)]
    return np.concatenate(parts), np.concatenate(spoken), np.concatenate(between)


# Fractions of speech that may be lost and of pauses that may be taken for speech: the measured values and a
# margin. In steady noise at 0 dB the faint ends of words are below the noise.
NOISES = {
    None: (0.005, 0.05),
    ("pink_noise", 10): (0.01, 0.05),
    ("pink_noise", 5): (0.015, 0.05),
    ("white_noise", 0): (0.06, 0.05),
    ("running_tap", 5): (0.005, 0.55),
    ("exercise_bike", 5): (0.005, 0.6),
    ("doing_the_dishes", 5): (0.005, 0.85),
    ("dude_miaowing", 0): (0.005, 1.0),
}


@pytest.mark.shared
@pytest.mark.parametrize("case", NOISES, ids=str)
def test_no_speech_is_lost_in_real_recordings(clips, case):
    samples, spoken, between = in_a_row(clips)
    if case is None:
        added = noise(len(samples) / RATE, -65)
    else:
        added = np.resize(read_audio(SHARED / "noise" / "gsc" / f"{case[0]}.flac"), len(samples))
        speech = samples[np.repeat(spoken, 320)]
        added = added * np.sqrt(np.mean(speech**2) / np.mean(added**2) / 10 ** (case[1] / 10))
    found = np.zeros(len(samples), bool)
    stretches = list(speech_stretches(blocks((samples + added).astype(np.float32), 1 << 20), RATE))
    for stretch in stretches:
        found[stretch.start : stretch.start + len(stretch.samples)] = True
    by_frame = found.reshape(-1, 320).any(axis=1)
    lost = (spoken & ~by_frame).sum() / spoken.sum()
    kept = (between & by_frame).sum() / between.sum()
    print(f"{case}: {lost:.2%} of the speech lost, {kept:.1%} of the pauses kept, {len(stretches)} stretches")
    assert lost <= NOISES[case][0] and kept <= NOISES[case][1]
    if case is None:
        assert len(stretches) == len(clips)
