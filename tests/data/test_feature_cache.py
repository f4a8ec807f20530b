"""Tests of the feature cache: computed once and never stale after kills, changes and damage."""

import os
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import data.features.cache as feature_cache
from data.features.augment import AugmentConfig
from data.features.cache import prepare_features
from data.manifest import Utterance
from utils.audio.reading import read_audio
from utils.audio.samples import write_wav
from utils.errors import CacheError, CorpusError
from utils.features.settings import FeatureConfig, settings_hash
from utils.features.speech import extract_features

CONFIG = FeatureConfig()
COPIES = AugmentConfig(copies=2, noise_probability=0.5, room_probability=0.5)


def recordings(folder: Path, count: int = 6, prefix: str = "u") -> list[Utterance]:
    """Utterances of noise, 0.2 s and longer."""
    made = []
    for index in range(count):
        path = folder / f"{prefix}{index}.wav"
        write_wav(path, 0.1 * np.random.default_rng(index).normal(size=3200 + 800 * index))
        made.append(Utterance(f"{prefix}{index}", path, 0.2 + 0.05 * index, "s", ("ma1",), "妈"))
    return made


@pytest.fixture
def corpus(tmp_path) -> list[Utterance]:
    return recordings(tmp_path / "audio")


@pytest.fixture
def computed(monkeypatch) -> list[tuple[str, int]]:
    """A list of the (id, copy) pairs that this process computes."""
    seen: list[tuple[str, int]] = []
    original = feature_cache._copies

    def record(utterance, copies, settings):
        seen.extend((utterance.id, copy) for copy in copies)
        return original(utterance, copies, settings)

    monkeypatch.setattr(feature_cache, "_copies", record)
    return seen


def all_features(cache) -> dict[tuple[str, int], np.ndarray]:
    return {
        (name, copy): np.array(cache.features(name, copy))
        for name in cache.ids
        for copy in range(cache.copies + 1)
    }


def assert_same(left, right):
    left, right = all_features(left), all_features(right)
    assert left.keys() == right.keys()
    for key, values in left.items():
        np.testing.assert_array_equal(values, right[key])


@pytest.mark.parametrize("kind", ["spectrogram", "filter_bank", "mfcc"])
def test_holds_the_features_of_each_recording(tmp_path, corpus, kind):
    config = FeatureConfig(kind)
    cache = prepare_features(corpus, config, tmp_path / "cache", workers=1)
    assert cache.ids == tuple(u.id for u in corpus) and cache.copies == 0
    for utterance in corpus:
        expected = extract_features(read_audio(utterance.audio), config)
        features = cache.features(utterance.id)
        assert features.dtype == np.float16 and features.shape == expected.shape
        assert not features.flags.writeable
        np.testing.assert_array_equal(features, expected.astype(np.float16))
        (row,) = cache.rows([utterance.id])
        assert cache.frame_counts[row, 0] == len(expected)
    assert cache.rows(["u2", "u0"]).tolist() == [2, 0]


def test_workers_and_order_change_nothing(tmp_path, corpus):
    first = prepare_features(corpus, CONFIG, tmp_path / "one", COPIES, workers=1)
    two = prepare_features(corpus[::-1], CONFIG, tmp_path / "two", COPIES, workers=2)
    assert_same(first, two)
    assert two.ids == first.ids[::-1]


def test_added_utterances_and_copies_are_all_that_is_computed(tmp_path, corpus, computed):
    prepare_features(corpus[:4], CONFIG, tmp_path, workers=1)
    computed.clear()
    prepare_features(corpus, CONFIG, tmp_path, workers=1)
    assert sorted(computed) == [("u4", 0), ("u5", 0)]
    computed.clear()
    prepare_features(corpus[:2], CONFIG, tmp_path, AugmentConfig(copies=1), workers=1)
    assert sorted(computed) == [("u0", 1), ("u1", 1)]
    computed.clear()
    prepare_features(corpus[:2], CONFIG, tmp_path, AugmentConfig(copies=2), workers=1)
    assert sorted(computed) == [("u0", 2), ("u1", 2)]


def test_a_changed_file_is_computed_again(tmp_path, corpus, computed):
    prepare_features(corpus, CONFIG, tmp_path, workers=1)
    computed.clear()
    state = corpus[1].audio.stat()
    samples = read_audio(corpus[1].audio)
    write_wav(corpus[1].audio, -samples[::-1])  # same size
    os.utime(corpus[1].audio, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    cache = prepare_features(corpus, CONFIG, tmp_path, workers=1)
    assert computed == [("u1", 0)]
    np.testing.assert_array_equal(
        cache.features("u1"), extract_features(read_audio(corpus[1].audio), CONFIG).astype(np.float16)
    )


@pytest.mark.parametrize(
    "change",
    [
        {"feature_config": FeatureConfig(bins=40)},
        {"feature_config": FeatureConfig(normalise="none")},
        {"augment": AugmentConfig(copies=1, speeds=(0.8,))},
        {"augment": AugmentConfig(copies=1, trim_probability=0.5)},
        {"seed": 1},
    ],
    ids=["bins", "normalise", "augment", "trim", "seed"],
)
def test_a_changed_setting_never_gives_stale_features(tmp_path, corpus, computed, change):
    settings = {"feature_config": CONFIG, "augment": AugmentConfig(copies=1), "seed": 0, "workers": 1}
    prepare_features(corpus[:2], folder=tmp_path, **settings)
    computed.clear()
    after = prepare_features(corpus[:2], folder=tmp_path, **settings | change)
    assert {("u0", 1), ("u1", 1)} <= set(computed)
    assert_same(after, prepare_features(corpus[:2], folder=tmp_path / "fresh", **settings | change))


def test_a_changed_noise_recording_makes_new_copies(tmp_path, corpus, computed):
    noise = tmp_path / "noise" / "hum.wav"
    config = AugmentConfig(copies=1, noise_probability=1.0, noise_folder=str(noise.parent))
    write_wav(noise, 0.1 * np.random.default_rng(0).normal(size=8000))
    first = np.array(prepare_features(corpus[:1], CONFIG, tmp_path, config, workers=1).features("u0", 1))
    write_wav(noise, np.sin(np.arange(9000)))
    second = prepare_features(corpus[:1], CONFIG, tmp_path, config, workers=1).features("u0", 1)
    assert computed == [("u0", 0), ("u0", 1), ("u0", 1)]
    assert not np.array_equal(first, second)


def test_one_id_for_two_recordings_is_refused(tmp_path, corpus):
    twin = Utterance("u0", corpus[1].audio, 0.2, "s", ("ma1",), "妈")
    with pytest.raises(CorpusError, match=r"two recordings have the id 'u0', .*u0\.wav and .*u1\.wav"):
        prepare_features([*corpus, twin], CONFIG, tmp_path, workers=1)


def test_a_folder_that_cannot_be_written_is_named(tmp_path, corpus):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CacheError, match=r"the features can't be written \(.*\), .*file/filter_bank"):
        prepare_features(corpus, CONFIG, tmp_path / "file", workers=1)


def test_too_little_space_is_reported_before_the_work(tmp_path, corpus, computed, monkeypatch):
    copies = AugmentConfig(copies=2)
    seconds = sum(u.seconds for u in corpus)
    needed = round(seconds * 100) * 80 * 2 * 3
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=needed - 1))
    with pytest.raises(
        CacheError, match=r"need [\d.]+kB, [\d.]+kB are free, .*filter_bank.*, free some space"
    ):
        prepare_features(corpus, CONFIG, tmp_path, copies, workers=1)
    assert not computed
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=needed))
    prepare_features(corpus, CONFIG, tmp_path, copies, workers=1)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=0))
    prepare_features(corpus, CONFIG, tmp_path, copies, workers=1)  # everything exists: no space is needed


def shard_files(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / f"filter_bank-{settings_hash(CONFIG)}").glob("[!.]*.npy"))


def shards(folder: Path) -> list[Path]:
    return [path for path in shard_files(folder) if not path.name.endswith(".index.npy")]


@pytest.mark.parametrize(
    "damage",
    [
        "index missing",
        "shard missing",
        "shard cut",
        "index garbage",
        "index of another kind",
        "a wrong key",
    ],
)
def test_damaged_shards_are_computed_again(tmp_path, corpus, computed, damage):
    first = all_features(prepare_features(corpus, CONFIG, tmp_path, workers=1))
    shard = shards(tmp_path)[0]
    index = shard.with_name(shard.stem + ".index.npy")
    if damage.endswith("missing"):
        (index if damage.startswith("index") else shard).unlink()
    elif damage == "shard cut":
        os.truncate(shard, 500)
    elif damage == "index of another kind":
        np.save(index, np.arange(3))
    elif damage == "a wrong key":
        rows = np.load(index)
        rows["key"] = np.load(shards(tmp_path)[1].with_suffix(".index.npy"))["key"]
        np.save(index, rows)
    else:
        index.write_bytes(b"garbage")
    computed.clear()
    again = all_features(prepare_features(corpus, CONFIG, tmp_path, workers=1))
    assert len(computed) == 1  # small corpora have one utterance in each shard
    for key, values in first.items():
        np.testing.assert_array_equal(values, again[key])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda shard: flip_a_bit(shard, 2000), "damaged (wrong checksum)"),
        (lambda shard: os.truncate(shard, 2000), "cut off"),
        (lambda shard: shard.unlink(), "can't be read (No such file or directory)"),
    ],
    ids=["one bit", "cut", "missing"],
)
def test_damage_under_a_running_training_names_the_shard(tmp_path, corpus, computed, damage, message):
    cache = prepare_features(corpus, CONFIG, tmp_path, workers=1)
    before = all_features(cache)
    shard = shards(tmp_path)[2]
    damage(shard)
    with pytest.raises(CacheError, match=rf"{re.escape(message)}, {shard}, delete the file") as caught:
        all_features(cache)
    assert caught.value.where == str(shard)
    computed.clear()
    shard.unlink(missing_ok=True)  # as the message recommends
    again = all_features(prepare_features(corpus, CONFIG, tmp_path, workers=1))
    assert len(computed) == 1
    for key, values in before.items():
        np.testing.assert_array_equal(values, again[key])


def flip_a_bit(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 4
    path.write_bytes(content)


def test_shards_that_cannot_be_read_are_not_thrown_away(tmp_path, corpus, monkeypatch):
    """Too many open files or an unavailable network disk: the features may be intact."""
    prepare_features(corpus, CONFIG, tmp_path, workers=1)
    before = shard_files(tmp_path)

    def fail(path):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(np, "load", fail)
    message = rf"\(Too many open files\), {before[0].parent}/.*\.npy, check the permissions"
    with pytest.raises(CacheError, match=message):
        prepare_features(corpus, CONFIG, tmp_path, workers=1)
    assert shard_files(tmp_path) == before
