"""Tests of clips for keyword spotting: layouts, splits, labels, silence, samples, augmentation."""

import dataclasses
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile

from data.keywords.augment import KeywordAugmentConfig, augment_clips, load_noises
from data.keywords.clip_cache import fit_clip, load_clips
from data.keywords.clips import (
    SILENCE,
    UNKNOWN,
    KeywordClip,
    KeywordDataConfig,
    labels_of,
    noise_recordings,
    read_keyword_clips,
)
from data.keywords.folders import read_recordings, split_of_name
from data.manifest import Utterance, write_manifest
from tests.support.damage import DAMAGE, damage_file
from utils.audio.reading import SAMPLE_RATE
from utils.audio.samples import write_wav
from utils.config import build_config, to_plain
from utils.errors import AudioError, CacheError, ConfigError, CorpusError

WORDS = ("down", "go", "stop", "yes")
SPEAKERS = [f"{number:08x}" for number in range(40)]
# From the lists that come with Speech Commands 0.02.
OFFICIAL = {
    "dev": "a69b9b3e 439c84f4 409c962a dbaf8fc6 a6d586b7 0e17f595 ff2b842e 7fd25f7c 3cc595de 591d32f3",
    "test": "bb05582b 97f4c236 f2e59fea fdb5155e dc75148d 3f170018 18f8afd5 e1469561 5c8af87a aa48c94a",
}


def tone(seconds: float, hertz: float = 300.0, level: float = 0.3, rate: int = SAMPLE_RATE) -> np.ndarray:
    return (level * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """Four words by forty speakers, and noise, in the layout of Speech Commands without its lists."""
    root = tmp_path_factory.mktemp("words") / "commands"
    for number, word in enumerate(WORDS):
        for speaker in SPEAKERS:
            write_wav(root / word / f"{speaker}_nohash_0.wav", tone(0.1, 200 + 50 * number))
    for name, seconds in (("pink", 8.0), ("short", 0.5)):
        write_wav(root / "_background_noise_" / f"{name}.wav", tone(seconds, 60.0, 0.05))
    (root / "_background_noise_" / "README.md").write_text("noise")
    return root


@pytest.fixture
def folder(made, tmp_path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "commands"))


def config(folder: Path | str, **values) -> KeywordDataConfig:
    return KeywordDataConfig(folder=str(folder), **values)


def speakers(clips: list[KeywordClip]) -> set[str]:
    return {clip.speaker for clip in clips if clip.speaker}


# ------------------------------------------------------------------ splits


@pytest.mark.parametrize("split", OFFICIAL)
def test_the_rule_gives_the_official_lists(split):
    for speaker in OFFICIAL[split].split():
        assert {split_of_name(f"{speaker}_nohash_{n}.wav") for n in range(3)} == {split}


def test_names_split_speakers(made, capsys):
    clips = read_keyword_clips(config(made))
    assert sum(len(speakers(split)) for split in clips.values()) == len(SPEAKERS)
    assert set.union(*(speakers(split) for split in clips.values())) == set(SPEAKERS)
    assert capsys.readouterr().err == ""
    assert {clip.label for clip in clips["dev"]} == {*WORDS, SILENCE}
    assert all(clip.audio is None or clip.audio.is_file() for split in clips.values() for clip in split)


def test_lists_go_before_the_rule(folder):
    (folder / "validation_list.txt").write_text("yes/00000003_nohash_0.wav\ngone/a_nohash_0.wav\n\n")
    (folder / "testing_list.txt").write_text("./yes/00000004_nohash_0.wav\r\nno\\x_nohash_0.wav\r\n")
    recordings = read_recordings(folder)
    assert {r.id: r.split for r in recordings if r.split != "train"} == {
        "yes/00000003_nohash_0.wav": "dev",
        "yes/00000004_nohash_0.wav": "test",
    }


@pytest.mark.parametrize(
    ("dev", "test", "message"),
    [
        (
            "yes/nobody.wav",
            "",
            r"1 recordings of the list don't exist, .* 'yes/nobody.wav'.*validation_list",
        ),
        ("go/00000001_nohash_0.wav", "go/00000001_nohash_0.wav", "is in both lists"),
        (None, "", "one of the two lists of splits is missing.*validation_list"),
        (b"\xff\xfe", "", "not UTF-8 text"),
    ],
    ids=["missing", "twice", "one list", "bytes"],
)
def test_wrong_lists(folder, dev, test, message):
    for name, content in (("validation_list.txt", dev), ("testing_list.txt", test)):
        if content is not None:
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CorpusError, match=message):
        read_recordings(folder)


def test_split_folders_and_folders_of_speakers(made, tmp_path, capsys):
    for split, first in (("train", 0), ("validation", 2), ("testing", 3)):
        for word in ("on", "off"):
            for speaker in SPEAKERS[first : first + 1 + (split == "train")]:
                folder = tmp_path / split / word / f"s{speaker}"
                folder.mkdir(parents=True)
                shutil.copy(made / "go" / "00000000_nohash_0.wav", folder / "1.wav")
    clips = read_keyword_clips(config(tmp_path, silence_share=0.0))
    assert {split: len(found) for split, found in clips.items()} == {"train": 4, "dev": 2, "test": 2}
    assert speakers(clips["dev"]) == {"s00000002"}
    assert capsys.readouterr().err == ""
    shutil.copytree(tmp_path / "train", tmp_path / "words")
    nested = read_recordings(tmp_path / "words")
    assert {recording.split for recording in nested if recording.speaker == "s00000000"} == {
        split_of_name("s00000000")
    }


def test_speakers_in_two_splits_are_named(tmp_path, made, capsys):
    audio = sorted((made / "go").glob("*.wav"))
    for split, first in (("train", 0), ("test", 3)):
        rows = [
            Utterance(f"u{n}", audio[n], 0.1, f"S{n % 4}", ("ting2",), "停") for n in range(first, first + 3)
        ]
        write_manifest(tmp_path / f"{split}.tsv", rows)
    clips = read_keyword_clips(
        KeywordDataConfig(train=(str(tmp_path / "train.tsv"),), test=(str(tmp_path / "test.tsv"),))
    )
    assert "2 speakers are in both train and test: S0, S1;" in capsys.readouterr().err
    assert {c.label for c in clips["train"]} == {"停"} and clips["dev"] == []
    again = dataclasses.replace(KeywordDataConfig(), train=(str(tmp_path / "train.tsv"),) * 2)
    with pytest.raises(CorpusError, match="2 recordings have the id 'u0'"):
        read_keyword_clips(again)
    with pytest.raises(CorpusError, match="3 recordings are in both train and dev"):
        read_keyword_clips(dataclasses.replace(again, train=again.train[:1], dev=again.train[:1]))


# ------------------------------------------------------------------ labels, unknown words, silence


def test_labels_and_shares(made):
    requested = config(made, words=("yes", "go"), unknown_share=0.25, silence_share=0.5)
    clips = read_keyword_clips(requested)
    assert labels_of(requested, clips) == (SILENCE, UNKNOWN, "yes", "go")
    for split in ("train", "test"):
        count = {label: sum(c.label == label for c in clips[split]) for label in labels_of(requested, clips)}
        known = count["yes"] + count["go"]
        assert count["yes"] == count["go"]
        assert count[UNKNOWN] == round(0.25 * known) and count[SILENCE] == round(0.5 * known)
    assert {c.id.partition("/")[0] for c in clips["train"] if c.label == UNKNOWN} == {"down", "stop"}
    assert read_keyword_clips(requested) == clips
    other = read_keyword_clips(dataclasses.replace(requested, seed=1))
    assert {c.id for c in other["train"] if c.label == UNKNOWN} != {
        c.id for c in clips["train"] if c.label == UNKNOWN
    }
    few = dataclasses.replace(requested, words=(), silence_share=0.0)
    assert labels_of(few, read_keyword_clips(few)) == WORDS


def test_unknown_words_that_are_not_in_train_are_refused(made, tmp_path):
    for split, words in (("train", "go yes"), ("dev", "go yes"), ("test", "go yes stop")):
        for word in words.split():
            shutil.copytree(made / word, tmp_path / split / word)
    requested = config(tmp_path, words=("go", "yes"))
    with pytest.raises(CorpusError, match="clips of _unknown_ are in test, but not in train") as caught:
        labels_of(requested, read_keyword_clips(requested))
    assert "data.unknown_share=0" in caught.value.hint
    without = dataclasses.replace(requested, unknown_share=0)
    assert labels_of(without, read_keyword_clips(without)) == (SILENCE, "go", "yes")


def test_silence_of_the_splits_comes_from_different_parts_of_the_noise(made):
    clips = read_keyword_clips(config(made, silence_share=1.0))
    assert [path.name for path in noise_recordings(config(made))] == ["pink.wav", "short.wav"]
    # The dev and test parts are shorter than a clip, and all parts of the second recording are.
    for name, borders in (("pink.wav", (0.0, 6.4, 7.2, 8.0)), ("short.wav", (0.0, 0.4, 0.45, 0.5))):
        for split, low, high in zip(("train", "dev", "test"), borders, borders[1:], strict=False):
            silence = [c for c in clips[split] if c.label == SILENCE and c.audio and c.audio.name == name]
            cut = [(c.start_seconds, c.start_seconds + c.seconds) for c in silence]
            assert cut or name == "short.wav"
            assert all(low <= start < end <= high + 2e-4 for start, end in cut)
    silence = [clip for clip in clips["train"] if clip.label == SILENCE]
    assert sum(clip.audio is None for clip in silence) == len(silence) // 8
    assert len({clip.id for clip in silence}) == len(silence)


def test_own_recordings_of_silence_and_of_other_words(folder):
    (folder / "down").rename(folder / SILENCE)
    (folder / "stop").rename(folder / UNKNOWN)
    requested = config(folder, unknown_share=9.0)
    clips = read_keyword_clips(requested)
    assert labels_of(requested, clips) == (SILENCE, UNKNOWN, "go", "yes")
    silence = [clip for clip in clips["train"] if clip.label == SILENCE]
    assert all(clip.id.startswith("_silence_/0") for clip in silence)
    assert len(silence) == len([clip for clip in clips["train"] if clip.label == UNKNOWN])


def test_silence_without_noise_is_generated(folder, tmp_path):
    shutil.rmtree(folder / "_background_noise_")
    clips = read_keyword_clips(config(folder, silence_share=0.5))
    silence = [clip for clip in clips["train"] if clip.label == SILENCE]
    assert silence and all(clip.audio is None for clip in silence)
    store = load_clips(silence, SAMPLE_RATE, 1600, tmp_path / "cache")
    peaks = np.abs(store.samples.astype(int)).max(axis=1)
    assert (peaks == 0).any() and (peaks > 0).any() and peaks.max() < 0.05 * 32768
    with pytest.raises(AudioError, match="no recordings in this folder"):
        read_keyword_clips(config(folder, noise_folder=str(tmp_path / "cache")))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("yess",), "no recordings of the word 'yess' to train on.*did you mean yes"),
        (("打开",), "no recordings of the word '打开'.*there are: down, go, stop, yes"),
    ],
)
def test_words_without_a_folder_are_named(made, words, message):
    with pytest.raises(CorpusError, match=message):
        read_keyword_clips(config(made, words=words))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"words": ["go", "go"]}, "data.words holds 'go' 2 times"),
        ({"words": ["_silence_"]}, "it is added automatically"),
        ({"silence_share": -1}, "data.silence_share is -1"),
        ({"clip_ms": 0}, "data.clip_ms is 0"),
    ],
)
def test_invalid_settings_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        build_config(KeywordDataConfig, {**to_plain(KeywordDataConfig()), **values})


def test_nothing_to_read(folder, tmp_path):
    with pytest.raises(ConfigError, match="no recordings are given"):
        read_keyword_clips(KeywordDataConfig())
    with pytest.raises(ConfigError, match="are both given"):
        read_keyword_clips(config(folder, train=("x.tsv",)))
    with pytest.raises(ConfigError, match=r"data\.folder and data\.dev are both given"):
        read_keyword_clips(config(folder, dev=("x.tsv",)))
    with pytest.raises(CorpusError, match="no such folder"):
        read_keyword_clips(config(tmp_path / "nowhere"))
    (tmp_path / "bare").mkdir()
    with pytest.raises(CorpusError, match=r"no recordings in this folder.*bare.*a folder for each word"):
        read_keyword_clips(config(tmp_path / "bare"))
    (folder / "empty").mkdir()
    with pytest.raises(CorpusError, match=r"a word's folder holds no recordings.*empty"):
        read_keyword_clips(config(folder))


# ------------------------------------------------------------------ samples


def test_fitting_a_clip():
    np.testing.assert_array_equal(fit_clip(np.ones(3, np.float32), 6), [0, 1, 1, 1, 0, 0])
    long = np.concatenate([tone(20.0, level=0.01), tone(0.8), tone(9.2, level=0.01)])
    fitted = fit_clip(long, SAMPLE_RATE)
    assert len(fitted) == SAMPLE_RATE
    assert np.square(fitted).sum() >= np.square(tone(0.8)).sum()
    late = fit_clip(np.concatenate([np.zeros(1005), np.ones(100)]).astype(np.float32), 100)
    assert late.sum() == 100  # the last segment, though the step doesn't divide its beginning


def test_samples_are_those_of_the_files(made, tmp_path):
    clips = read_keyword_clips(config(made, silence_share=1.0))["train"]
    store = load_clips(clips, SAMPLE_RATE, SAMPLE_RATE, tmp_path)
    assert store.clips == tuple(clips) and store.rejected == ()
    assert isinstance(store.samples, np.memmap) and not store.samples.flags.writeable
    for row in (0, 70):
        spoken, _ = soundfile.read(clips[row].audio, dtype="int16")
        np.testing.assert_array_equal(store.samples[row], np.pad(spoken, 7200))
    pink, _ = soundfile.read(made / "_background_noise_" / "pink.wav", dtype="int16")
    cut = [row for row, clip in enumerate(clips) if clip.audio and clip.audio.name == "pink.wav"]
    assert len(cut) > 20
    for row in cut:
        start = round(clips[row].start_seconds * SAMPLE_RATE)
        np.testing.assert_array_equal(store.samples[row], pink[start : start + SAMPLE_RATE])


def test_the_cache_is_used_and_a_changed_file_is_read_again(folder, tmp_path):
    clips = read_keyword_clips(config(folder))["train"]
    first = load_clips(clips, SAMPLE_RATE, 1600, tmp_path)
    (path,) = tmp_path.glob("*.int16")
    written = path.stat().st_mtime_ns
    assert np.array_equal(load_clips(clips, SAMPLE_RATE, 1600, tmp_path).samples, first.samples)
    assert path.stat().st_mtime_ns == written
    write_wav(clips[0].audio, tone(0.1, 900.0))
    second = load_clips(clips, SAMPLE_RATE, 1600, tmp_path)
    assert not np.array_equal(second.samples[0], first.samples[0])
    np.testing.assert_array_equal(second.samples[1:], first.samples[1:])
    assert len(list(tmp_path.glob("*.int16"))) == 2
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_workers_give_the_same(made, tmp_path, monkeypatch):
    monkeypatch.setattr("data.keywords.clip_cache._CLIPS_PER_JOB", 10)
    clips = read_keyword_clips(config(made))["train"]
    first = load_clips(clips, 8000, 800, tmp_path / "one", workers=1)
    two = load_clips(clips, 8000, 800, tmp_path / "two", workers=2)
    np.testing.assert_array_equal(first.samples, two.samples)


def spoil(path: Path, kind: str) -> None:
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "text":
        path.write_text("this is not a recording")
    elif kind == "cut off":
        path.write_bytes(path.read_bytes()[:-900])
    elif kind == "missing":
        path.unlink()
    else:
        soundfile.write(path, np.full(1600, np.nan, np.float32), SAMPLE_RATE, subtype="FLOAT")


def test_unusable_recordings_are_named_and_left_out(folder, tmp_path, capsys):
    clips = read_recordings(folder)
    whole = load_clips(clips, SAMPLE_RATE, 1600, tmp_path / "whole")
    spoilt = {3: "empty", 4: "NaN", 90: "cut off", 159: "text"}
    for row, kind in spoilt.items():
        spoil(clips[row].audio, kind)
    for _ in range(2):  # the second time from the cache
        store = load_clips(clips, SAMPLE_RATE, 1600, tmp_path / "cache")
        assert [clip for clip, _ in store.rejected] == [clips[row] for row in spoilt]
        assert store.clips == tuple(clip for row, clip in enumerate(clips) if row not in spoilt)
        np.testing.assert_array_equal(store.samples, np.delete(whole.samples, list(spoilt), axis=0))
    assert "note: 4 of 160 clips can't be used" in capsys.readouterr().err
    (notes,) = (tmp_path / "cache").glob("*.rejected.tsv")
    lines = notes.read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[1] for line in lines[1:]] == [clips[row].id for row in spoilt]
    for line, reason in zip(
        lines[1:], ("0 bytes", "1600 samples are NaN", "cut off", "this is text"), strict=True
    ):
        assert reason in line and ".wav" in line


def test_a_silent_recording_is_silence_but_no_word(tmp_path):
    """A muted microphone would teach the model that silence is the word."""
    write_wav(tmp_path / "muted.wav", np.zeros(1600, np.float32))
    write_wav(tmp_path / "go.wav", tone(0.1))
    muted = KeywordClip("muted", tmp_path / "muted.wav", SILENCE)
    clips = [*(KeywordClip(f"go{n}", tmp_path / "go.wav", "go") for n in range(99)), muted]
    assert load_clips(clips, SAMPLE_RATE, 1600, tmp_path / "cache").rejected == ()
    clips[-1] = dataclasses.replace(muted, label="go")
    ((rejected, reason),) = load_clips(clips, SAMPLE_RATE, 1600, tmp_path / "cache").rejected
    assert rejected == clips[-1] and "it is silent, but labelled go" in reason


@pytest.mark.parametrize("kind", ["empty", "text", "cut off", "NaN", "missing"])
def test_many_unusable_recordings_are_an_error(folder, tmp_path, kind):
    clips = read_keyword_clips(config(folder))["train"][:20]
    spoil(clips[7].audio, kind)
    with pytest.raises(
        CorpusError, match=f"1 of 20 clips can't be used .{re.escape(clips[7].id)}: .*rejected.tsv"
    ):
        load_clips(clips, SAMPLE_RATE, 1600, tmp_path / "cache")
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".tsv"]


@pytest.mark.parametrize("ending", ["int16", "rejected.tsv", "sha256"])
@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_cache_is_named(made, tmp_path, ending, kind):
    clips = read_keyword_clips(config(made))["dev"]
    load_clips(clips, SAMPLE_RATE, 1600, tmp_path)
    (path,) = tmp_path.glob(f"*.{ending}")
    damage_file(path, kind, np.random.default_rng(0))
    with pytest.raises(CacheError, match=r"the cached clips are damaged .*delete .*\.sha256"):
        load_clips(clips, SAMPLE_RATE, 1600, tmp_path)
    next(tmp_path.glob("*.sha256")).unlink()
    assert len(load_clips(clips, SAMPLE_RATE, 1600, tmp_path).clips) == len(clips)


# ------------------------------------------------------------------ augmentation

NOTHING = KeywordAugmentConfig(shift_ms=0.0, speed_probability=0.0, noise_probability=0.0, gain_db=(0.0, 0.0))


def changed(**values) -> KeywordAugmentConfig:
    return dataclasses.replace(NOTHING, **values)


def batch(count: int = 6) -> np.ndarray:
    """Half a second of a tone in the middle of each second, another tone in each clip."""
    clips = np.zeros((count, SAMPLE_RATE), np.float32)
    for row in range(count):
        clips[row, 4000:12000] = tone(0.5, 300 + 40 * row)
    return clips


def altered(config: KeywordAugmentConfig, seed: int = 0, clips: np.ndarray | None = None, noises=()):
    clips = batch() if clips is None else clips
    return augment_clips(clips, config, np.random.default_rng(seed), noises)


def test_shifts_move_and_bring_zeros_in():
    clips = batch(60)
    result = altered(changed(shift_ms=100.0), clips=clips)
    starts = np.abs(result).argmax(axis=1) - np.abs(clips).argmax(axis=1)
    assert np.abs(starts).max() <= 1600 and starts.min() < -800 and starts.max() > 800
    for row, start in enumerate(starts):
        np.testing.assert_array_equal(result[row], np.roll(clips[row], start))
    far = altered(changed(shift_ms=3000.0), clips=clips)  # a clip may be shifted out completely
    assert {len(row) for row in far} == {SAMPLE_RATE} and not far.any(axis=1).all()


def test_noise_has_the_requested_power():
    noises = load_noises([], seed=3)
    assert len(noises) == 5 and all(len(noise) == 20 * SAMPLE_RATE for noise in noises)
    for snr_db in (0.0, 15.0):
        result = altered(changed(noise_probability=1.0, snr_db=(snr_db, snr_db)), noises=noises)
        ratio = np.square(batch()).mean(axis=1) / np.square(result - batch()).mean(axis=1)
        np.testing.assert_allclose(10 * np.log10(ratio), snr_db, atol=0.1)
    half = altered(changed(noise_probability=0.5), clips=batch(1).repeat(300, 0), noises=noises)
    assert np.mean((half != batch(1)).any(axis=1)) == pytest.approx(0.5, abs=0.1)
    silent = altered(KeywordAugmentConfig(), clips=np.zeros((3, 800), np.float32), noises=noises)
    assert not silent.any()
    with pytest.raises(ValueError, match="noises are empty"):
        altered(changed(noise_probability=0.1))


def test_speed_changes_pitch_and_length_together_without_aliases():
    faster = altered(changed(speed=(1.25, 1.25), speed_probability=1.0))
    for row, clip in enumerate(faster):
        assert np.abs(np.fft.rfft(clip)).argmax() == pytest.approx(1.25 * (300 + 40 * row), abs=3)
        sounding = np.flatnonzero(np.abs(clip) > 0.05)
        assert sounding[-1] - sounding[0] == pytest.approx(8000 / 1.25, abs=40)
        assert (sounding[0] + sounding[-1]) / 2 == pytest.approx(8000, abs=40)
    # 7.5 kHz at 1.25 would be 9.4 kHz, and fold back to 6.6 kHz.
    high = tone(1.0, 7500.0)[None] * np.hanning(SAMPLE_RATE).astype(np.float32)
    alias = altered(changed(speed=(1.25, 1.25), speed_probability=1.0), clips=high)
    assert np.square(alias).sum() < 1e-4 * np.square(high).sum()
    slower = altered(changed(speed=(0.8, 0.8), speed_probability=1.0))
    assert slower.shape == (6, SAMPLE_RATE)
