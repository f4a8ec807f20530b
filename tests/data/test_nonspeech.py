"""Tests of generated non-speech sounds: reproducible, audible, listed without texts."""

import numpy as np
import pytest

from data.corpora.nonspeech import SOUNDS, generate, main, make_sound
from data.manifest import read_manifest
from utils.audio.reading import SAMPLE_RATE, read_audio
from utils.audio.samples import write_wav


@pytest.mark.parametrize("kind", SOUNDS)
def test_a_sound_is_audible_finite_and_repeatable(kind):
    first, again, other = (make_sound(SOUNDS[kind], np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.isfinite(first).all() and first.dtype == np.float32
    assert 1.5 * SAMPLE_RATE <= len(first) <= 8 * SAMPLE_RATE and len(first) != len(other)
    assert 1e-3 < np.sqrt(np.mean(np.square(first))) < 0.3 and np.abs(first).max() <= 0.97


def test_the_manifest_has_no_texts_and_a_third_of_the_sounds_are_recorded(tmp_path, capsys):
    noises = tmp_path / "noises"
    write_wav(noises / "kept.wav", np.full(SAMPLE_RATE, 0.25, np.float32))
    arguments = ["--count", "6", "--seed", "4", "--noise", str(noises)]
    assert main([str(tmp_path / "a"), *arguments]) == 0
    assert str(tmp_path / "a" / "train.tsv") in capsys.readouterr().out
    utterances = read_manifest(tmp_path / "a" / "train.tsv")
    assert [(u.pinyin, u.hanzi, u.speaker) for u in utterances] == [((), "", "")] * 6
    assert sum("recorded" in u.id for u in utterances) == 2
    for utterance in utterances:
        assert len(read_audio(utterance.audio)) == pytest.approx(utterance.seconds * SAMPLE_RATE, abs=8)
    # A constant recording: nearly all of its energy is at 0 Hz.
    recorded = read_audio(next(u.audio for u in utterances if "recorded" in u.id))
    assert abs(recorded.mean()) > 0.5 * np.sqrt(np.mean(np.square(recorded)))
    again = read_manifest(generate(tmp_path / "b", 6, 4, [noises / "kept.wav"]))
    assert [u.audio.read_bytes() for u in again] == [u.audio.read_bytes() for u in utterances]
