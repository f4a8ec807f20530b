"""Tests of packed corpora: each utterance once per epoch, another order each time, kills and damage."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import data.features.packing as packing
from data.batches import packed_source
from data.batches.packed_source import PackedCorpus, PackedSource
from data.features.augment import AugmentConfig
from data.features.cache import prepare_features
from data.features.packing import pack_corpus
from data.features.spec_augment import SpecAugmentConfig
from data.manifest import find_lines, read_lines, read_manifest, write_manifest
from preflight.recipes import read_recipe, recipe_listings
from tests.support.tiny_corpus import write_tiny_corpus
from training.run import train_from_config
from utils.errors import AudioError, CacheError, ConfigError, CorpusError
from utils.features.settings import FeatureConfig
from utils.run_folder.run import RunFolder
from utils.vocabulary import acoustic_vocabulary

FEATURES, COPIES = FeatureConfig(bins=16), AugmentConfig(copies=1)
NONE_SHORT = lambda cache, utterances, labels: ()  # noqa: E731


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(packing, "SHARD_FEATURES", 8)  # 4 utterances
    monkeypatch.setattr(packed_source, "GROUP", 2)


@pytest.fixture(scope="module")
def manifests(tmp_path_factory) -> list[Path]:
    """Two manifests of 22 utterances together."""
    folder = tmp_path_factory.mktemp("corpus")
    utterances = read_manifest(write_tiny_corpus(folder, utterances=22))
    write_manifest(folder / "a.tsv", utterances[:15])
    write_manifest(folder / "b.tsv", utterances[15:])
    return [folder / "a.tsv", folder / "b.tsv"]


def pack(manifests, folder: Path, **changes) -> Path:
    pack_corpus(manifests, folder, FEATURES, changes.get("augment", COPIES), workers=1)
    return folder


def source(*folders: Path, seed: int = 0, weights=None, **changes) -> PackedSource:
    vocabulary = acoustic_vocabulary()
    return PackedSource(
        [PackedCorpus.open(folder) for folder in folders],
        weights or [1.0] * len(folders),
        encode=lambda utterance: vocabulary.encode(utterance.pinyin),
        too_short=changes.pop("too_short", NONE_SHORT),
        batch_frames=400,
        max_batch=4,
        seed=seed,
        **changes,
    )


def ids(batches) -> list[list[str]]:
    return [batch.ids for batch in batches]


def test_lines_of_a_manifest_are_read_one_by_one(tmp_path):
    utterances = read_manifest(write_tiny_corpus(tmp_path, utterances=6))
    text = (tmp_path / "manifest.tsv").read_text(encoding="utf-8").replace("\n", "\r\n\r\n")
    (tmp_path / "odd.tsv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    starts = find_lines(tmp_path / "odd.tsv")
    assert read_lines(tmp_path / "odd.tsv", starts[[4, 0]]) == [utterances[4], utterances[0]]
    with pytest.raises(CorpusError, match=r"odd\.tsv, byte 3"):
        read_lines(tmp_path / "odd.tsv", [3])


def test_an_epoch_reads_each_utterance_once_in_an_order_of_its_own(manifests, tmp_path):
    packed = source(pack(manifests, tmp_path / "packed"))
    names = sorted(u.id for path in manifests for u in read_manifest(path))
    epochs = [ids(packed.batches(epoch)) for epoch in (1, 2, 1)]
    for epoch in epochs:
        assert sorted(name for batch in epoch for name in batch) == names
    assert epochs[0] == epochs[2] != epochs[1]
    assert ids(source(tmp_path / "packed", seed=1).batches(1)) not in epochs
    assert packed.utterance_count == len(names)


def test_an_epoch_is_entered_at_any_step(manifests, tmp_path):
    packed = source(pack(manifests, tmp_path / "packed"), spec_augment=SpecAugmentConfig())
    whole = list(packed.batches(1))
    assert len(whole) > 6
    for first in range(len(whole) + 1):
        rest = list(packed.batches(1, first))
        assert ids(rest) == ids(whole[first:])
        for batch, expected in zip(rest, whole[first:], strict=True):
            np.testing.assert_array_equal(batch.features, expected.features)


def test_replicas_read_shards_of_the_same_batches(manifests, tmp_path):
    packed = source(pack(manifests, tmp_path / "packed"))
    for batch, *parts in zip(
        *(packed.batches(1, 0, shard) for shard in ((0, 1), (0, 2), (1, 2))), strict=True
    ):
        assert batch.ids == parts[0].ids == parts[1].ids
        np.testing.assert_array_equal(batch.features[0::2], parts[0].features)
        np.testing.assert_array_equal(batch.features[1::2], parts[1].features)


def test_features_are_those_of_the_cache(manifests, tmp_path):
    """The features of the recording or of its copy, as the epoch has drawn."""
    utterances = [u for path in manifests for u in read_manifest(path)]
    cache = prepare_features(utterances, FEATURES, tmp_path / "cache", COPIES, workers=1)
    drawn = set()
    for batch in source(pack(manifests, tmp_path / "packed")).batches(1):
        for name, features, length in zip(batch.ids, batch.features, batch.feature_lengths, strict=True):
            copies = [cache.features(name, copy) for copy in (0, 1)]
            drawn.add([np.array_equal(features[:length], copy) for copy in copies].index(True))
    assert drawn == {0, 1}


def test_weights_and_several_corpora(manifests, tmp_path):
    packed = [pack([path], tmp_path / path.stem) for path in manifests]
    counts = {u.id: 0 for path in manifests for u in read_manifest(path)}
    for batch in source(*packed, weights=[1.0, 2.0]).batches(1):
        for name in batch.ids:
            counts[name] += 1
    assert [counts[u.id] for u in read_manifest(manifests[0])] == [1] * 15
    assert [counts[u.id] for u in read_manifest(manifests[1])] == [2] * 7


def test_utterances_with_too_few_frames_are_left_out(manifests, tmp_path, caplog):
    short = source(pack(manifests, tmp_path / "packed"), too_short=lambda cache, utterances, labels: {0})
    read = [name for batch in short.batches(1) for name in batch.ids]
    assert (
        len(read) == 22 - 3 and "1 utterances have too few frames" in caplog.text
    )  # one utterance of each group


def test_corrected_transcripts_are_packed_again_without_the_features(manifests, tmp_path):
    for path in manifests:
        write_manifest(tmp_path / path.name, read_manifest(path))
    own = [tmp_path / path.name for path in manifests]
    packed = pack(own, tmp_path / "packed")
    before = {path: (path.stat().st_ino, path.read_bytes()) for path in packed.iterdir()}
    first, *others = read_manifest(own[0])
    corrected = replace(first, pinyin=("zhei4",), hanzi="这", speaker="other")
    write_manifest(own[0], [corrected, *others])
    pack(own, packed)
    changed = {path.suffix for path, (_, content) in before.items() if path.read_bytes() != content}
    kept = {path.suffix for path, (inode, _) in before.items() if path.stat().st_ino == inode}
    assert changed == {".tsv", ".sha256"} and kept == {".npy"}
    stored = {
        u.id: u
        for path in packed.glob("*.tsv")
        if path.with_suffix(".npy").exists()
        for u in read_manifest(path)
    }
    assert stored == {u.id: u for path in own for u in read_manifest(path)}
    assert len(list(source(packed).batches(1))) > 6  # the checksums fit


def test_two_utterances_with_one_id_are_refused(manifests, tmp_path):
    utterances = read_manifest(manifests[1])
    write_manifest(tmp_path / "c.tsv", [replace(utterances[2], audio=utterances[3].audio)])
    with pytest.raises(CorpusError, match=rf"the id '{utterances[2].id}'.*b\.tsv and .*c\.tsv"):
        pack([*manifests, tmp_path / "c.tsv"], tmp_path / "packed")
    content = manifests[1].read_text(encoding="utf-8")
    (manifests[1].parent / "twice.tsv").write_text(content + content.splitlines()[3], encoding="utf-8")
    with pytest.raises(CorpusError, match=rf"the id '{utterances[2].id}', [^ ]*twice\.tsv,"):
        pack([manifests[1].parent / "twice.tsv"], tmp_path / "packed")
    assert not (tmp_path / "packed").exists()


def test_recordings_that_cannot_be_used_are_left_out_and_listed(manifests, tmp_path):
    utterances = [u for path in manifests for u in read_manifest(path)]
    gone = replace(utterances[3], audio=tmp_path / "gone.wav")
    broken = replace(utterances[5], audio=Path(shutil.copy(utterances[5].audio, tmp_path / "broken.wav")))
    broken.audio.write_bytes(b"no sound")
    write_manifest(tmp_path / "one.tsv", [gone, *utterances[:3], *utterances[4:]])
    packed = pack([tmp_path / "one.tsv"], tmp_path / "packed")
    assert "no such audio file" in (packed / "failed.tsv").read_text(encoding="utf-8")
    read = {name for batch in source(packed).batches(1) for name in batch.ids}
    assert read == {u.id for u in utterances} - {gone.id}
    write_manifest(tmp_path / "two.tsv", [gone, broken, *utterances[6:]])
    with pytest.raises(AudioError, match="2 of 18 recordings are not usable"):
        pack([tmp_path / "two.tsv"], tmp_path / "many")
    with pytest.raises(CacheError, match="not a whole packed corpus"):
        PackedCorpus.open(tmp_path / "many")


def test_damage_is_named(manifests, tmp_path):
    packed = pack(manifests, tmp_path / "packed")
    index, shard = sorted(packed.glob("*.npy"))[:2]
    for path in (index, shard, shard.with_suffix(".tsv")):
        content = path.read_bytes()
        path.write_bytes(content[:-9])
        with pytest.raises(CacheError, match=path.name.split(".")[0]):
            list(source(packed).batches(1))
        path.write_bytes(content)
    for path in (packed / "packed.json", packed / "shards.tsv"):
        content = path.read_bytes()
        path.write_bytes(content.replace(b"1", b"2", 1))
        with pytest.raises(CacheError, match=r"not a whole packed corpus.*pack it again"):
            PackedCorpus.open(packed)
        path.write_bytes(content)


def test_other_settings_than_the_recipes_are_refused(manifests, tmp_path):
    corpus = PackedCorpus.open(pack(manifests, tmp_path / "packed"))
    corpus.check_settings(FEATURES, COPIES)
    with pytest.raises(ConfigError, match="features differ"):
        corpus.check_settings(FeatureConfig(), COPIES)
    with pytest.raises(ConfigError, match="augment differ"):
        corpus.check_settings(FEATURES, AugmentConfig(copies=3))


def test_a_training_reads_a_packed_corpus(manifests, tmp_path):
    packed, recipe = pack(manifests, tmp_path / "packed"), tmp_path / "recipe.yaml"
    recipe.write_text("model: {name: compact, width: 8, blocks: 1}\nfeatures: {bins: 16}\n", encoding="utf-8")
    lists = [f"data.train=[{packed}]", f"data.dev=[{manifests[1]}]", f"data.cache={tmp_path / 'cache'}"]
    more = ["augment.copies=1", "training.epochs=1", "data.workers=1"]
    train_from_config("speech", recipe, [*lists, *more], tmp_path / "run")
    assert "22 training and 7 dev utterances" in RunFolder(tmp_path / "run").log.read_text(encoding="utf-8")


def test_an_unfinished_packing_is_named(manifests, tmp_path):
    packed, recipe = pack(manifests, tmp_path / "packed"), tmp_path / "recipe.yaml"
    for name in ("packed.json", "packed.sha256", "shards.tsv"):  # written last
        (packed / name).unlink()
    recipe.write_text("model: {name: compact, width: 8, blocks: 1}\nfeatures: {bins: 16}\n", encoding="utf-8")
    lists = [f"data.train=[{packed}]", f"data.dev=[{manifests[1]}]", "augment.copies=1"]
    message = rf"not a whole packed corpus.*{packed}.*the same command goes on where it stopped"
    with pytest.raises(CacheError, match=message):
        train_from_config("speech", recipe, lists, tmp_path / "run")
    with pytest.raises(CacheError, match=message):
        recipe_listings(read_recipe(recipe, lists))
