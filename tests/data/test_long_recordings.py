"""Tests of long recordings with keywords at known times, and of samples streamed into a model."""

from pathlib import Path

import numpy as np
import pytest

from analysis.keyword.detections import read_spoken_keywords
from data.keywords.clips import KeywordClip
from data.keywords.long_recordings import (
    Material,
    main,
    write_long_recording,
)
from data.manifest import Utterance, write_manifest
from utils.audio.reading import SAMPLE_RATE, read_audio
from utils.audio.samples import write_wav
from utils.errors import CorpusError, UserError


def tone(hertz: float, seconds: float, silence: float = 0.1) -> np.ndarray:
    """A tone with silence before and after it."""
    edge = np.zeros(int(silence * SAMPLE_RATE), np.float32)
    at = np.arange(int(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    return np.concatenate([edge, np.float32(0.5) * np.sin(2 * np.pi * hertz * at).astype(np.float32), edge])


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each word: two keywords, other words, noise."""
    root = tmp_path_factory.mktemp("words")
    for word, hertz in (("开", 500), ("关", 1500), ("_unknown_", 3000)):
        for speaker in range(6):
            samples = tone(hertz, 0.3 + 0.02 * speaker)
            write_wav(root / word / f"S{speaker}_nohash_0.wav", samples)
    noise = np.random.default_rng(0).standard_normal(SAMPLE_RATE).astype(np.float32)
    write_wav(root / "_background_noise_" / "hiss.wav", 0.1 * noise)
    (root / "validation_list.txt").write_text("开/S1_nohash_0.wav\n关/S1_nohash_0.wav\n", encoding="utf-8")
    tests = [f"{word}/S{s}_nohash_0.wav\n" for word in ("开", "关", "_unknown_") for s in (4, 5)]
    (root / "testing_list.txt").write_text("".join(tests), encoding="utf-8")
    return root


def test_each_keyword_is_at_its_listed_time(words: Path, tmp_path: Path):
    arguments = ["--folder", str(words), "--hours", str(60 / 3600), "--keyword-share", "0.5"]
    assert main([*arguments, "--output", str(tmp_path / "one")]) == 0
    samples = read_audio(tmp_path / "one/stream.flac")
    spoken = read_spoken_keywords(tmp_path / "one/spoken.tsv")
    assert len(samples) >= 60 * SAMPLE_RATE and {word.keyword for word in spoken} == {"开", "关"}
    for word in spoken:
        segment = samples[round(word.start * SAMPLE_RATE) : round(word.end * SAMPLE_RATE)]
        spectrum = np.abs(np.fft.rfft(segment * np.hanning(len(segment))))
        peak = spectrum.argmax() * SAMPLE_RATE / len(segment)
        assert peak == pytest.approx({"开": 500, "关": 1500}[word.keyword], abs=5)
        assert 0.37 <= word.end - word.start <= 0.41  # speakers 4 and 5, those of the test split; no silence
    assert main([*arguments, "--output", str(tmp_path / "two")]) == 0
    assert (tmp_path / "one/stream.flac").read_bytes() == (tmp_path / "two/stream.flac").read_bytes()


def test_a_list_of_recordings_gives_all_its_clips(words: Path, tmp_path: Path):
    """One list is enough, because nothing is trained."""
    rows = [
        Utterance(f"{word}{s}", words / word / f"S{s}_nohash_0.wav", 0.5, f"S{s}", (syllable,), word)
        for word, syllable in (("开", "kai1"), ("关", "guan1"))
        for s in range(6)
    ]
    write_manifest(tmp_path / "words.tsv", rows)
    arguments = ["--manifest", str(tmp_path / "words.tsv"), "--hours", "0.01", "--keyword-share", "0.6"]
    assert main([*arguments, "--words", "开", "--output", str(tmp_path / "long")]) == 0
    assert {word.keyword for word in read_spoken_keywords(tmp_path / "long" / "spoken.tsv")} == {"开"}
    with pytest.raises(CorpusError, match=r"no recordings of the word '停'.*words\.tsv"):
        main([*arguments, "--words", "停", "--output", str(tmp_path / "long")])


def test_backgrounds_fill_the_time(words: Path, tmp_path: Path):
    write_wav(tmp_path / "talk/talk.wav", tone(800, 90.0))
    clip = KeywordClip("a", words / "开/S0_nohash_0.wav", "开")
    material = Material([clip], [], backgrounds=[tmp_path / "talk/talk.wav"])
    count = write_long_recording(tmp_path / "long", material, 120, keyword_share=0.3)
    samples = read_audio(tmp_path / "long/stream.flac")
    spectrum = np.abs(np.fft.rfft(samples))
    assert count and spectrum.argmax() * SAMPLE_RATE / len(samples) == pytest.approx(800, abs=1)


def test_missing_keywords_or_others_are_reported(words: Path, tmp_path: Path):
    clip = KeywordClip("a", words / "开/S0_nohash_0.wav", "开")
    with pytest.raises(CorpusError, match="nothing that isn't one"):
        write_long_recording(tmp_path / "none", Material([clip], []), 10)
    assert not (tmp_path / "none").exists()
    write_wav(tmp_path / "silent.wav", np.zeros(1000, np.float32))
    silent = KeywordClip("s", tmp_path / "silent.wav", "开")
    with pytest.raises(UserError, match=r"silent\.wav"):
        write_long_recording(tmp_path / "silent", Material([silent], [clip]), 10, keyword_share=1.0)
    assert not (tmp_path / "silent/stream.flac").exists()
