"""Tests of train.py keyword: from words in folders to a run, batches, losses, kills, refused runs."""

import csv
import itertools
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from data.features.spec_augment import SpecAugmentConfig
from data.keywords.augment import KeywordAugmentConfig, load_noises
from data.keywords.clip_cache import ClipStore, load_clips
from data.keywords.clips import KeywordDataConfig, read_keyword_clips
from model_keyword.loading import load_keyword_model
from preflight.recipes import examine_run
from tests.support.corpus_files import write
from tests.support.tiny_commands import state_of, temporary_files, weights_of
from tests.support.tiny_words import settings, write_keyword_run, write_tiny_words
from training.initialise import named_layers
from training.run import train_from_config
from training.tasks.keyword import (
    MASKS,
    targets_of,
)
from training.tasks.keyword_batches import KeywordBatches
from utils.config import to_plain
from utils.errors import ConfigError, RunError
from utils.features.keyword import KeywordFeatureConfig, keyword_features
from utils.files import write_json, write_text
from utils.run_folder import checksums
from utils.run_folder.run import RunFolder

FEATURES = KeywordFeatureConfig(mel_bins=12, coefficients=0)
LABELS = ("_silence_", "high", "low")


@pytest.fixture(scope="module")
def words(tmp_path_factory) -> Path:
    return write_tiny_words(tmp_path_factory.mktemp("words") / "words")


@pytest.fixture(scope="module")
def empty_config(tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp("config") / "words.yaml", "seed: 3\n")


@pytest.fixture(scope="module")
def trained(words, empty_config, tmp_path_factory) -> RunFolder:
    """A run with four evaluations, of which two checkpoints are kept."""
    run = tmp_path_factory.mktemp("runs") / "words"
    more = ("training.epochs=4", "training.kept_weights=2", "optimiser.learning_rate=0.02")
    more += ("training.evaluation_steps=20",)
    train_from_config("keyword", empty_config, settings(words, *more), run)
    return RunFolder(run)


@pytest.fixture(scope="module")
def store(words) -> ClipStore:
    clips = read_keyword_clips(KeywordDataConfig(folder=str(words), silence_share=0))["train"]
    return load_clips(clips, 16000, 3200, words.parent / "clips", workers=1)


def batches_of(store: ClipStore, **values) -> KeywordBatches:
    targets = targets_of(store.clips, LABELS)
    usual = {"augment": KeywordAugmentConfig(), "spec_augment": MASKS, "noises": load_noises([]), "seed": 5}
    return KeywordBatches(store, targets, values.pop("size", 7), FEATURES, **{**usual, **values})


# ------------------------------------------------------------------ the run folder


def test_a_run_holds_the_files_of_the_specification(trained):
    assert {path.name for path in trained.path.iterdir()} == {
        *("config.yaml", "flags.txt", "flags.json", "labels.txt", "model_summary.txt", "accuracy_last.txt"),
        *("best.weights.h5", "last.weights.h5", "weights", "checkpoint"),
        *("history.csv", "metrics.json", "train.log", "logs", "checksums", ".lock"),
    }
    assert trained.labels.read_text(encoding="utf-8") == "_silence_\nhigh\nlow\n"
    flags = json.loads((trained.path / "flags.json").read_text(encoding="utf-8"))
    assert flags == {key: value for key, value in trained.config().items() if key != "environment"}
    lines = (trained.path / "flags.txt").read_text(encoding="utf-8").splitlines()
    assert {"task=keyword", "features.mel_bins=12", "optimiser.learning_rate=0.02"} <= set(lines)
    assert re.search(r"Total params: [1-9]", (trained.path / "model_summary.txt").read_text())
    assert list(trained.logs.glob("train/events*")) and list(trained.logs.glob("validation/events*"))
    assert not temporary_files(trained.path)


def test_an_evaluation_comes_every_so_many_steps_and_its_figures_are_written(trained):
    rows = list(csv.DictReader(trained.history.open(encoding="utf-8")))
    assert [row["step"] for row in rows] == ["20", "40", "60", "80"]
    figures = [float(row["dev_accuracy"]) for row in rows]
    assert figures == [pytest.approx(1 - float(row["dev_error_rate"])) for row in rows]
    kept = {path.name for path in trained.kept_weights.iterdir()}
    named = [f"step_{20 * n:06}_accuracy_{figures[n - 1]:.4f}.weights.h5" for n in (1, 2, 3, 4)]
    best = json.loads(trained.metrics.read_text())["best"]
    assert kept == {*named[2:], named[best["epoch"] - 1]} and best["dev_accuracy"] == max(figures)


def test_the_best_weights_are_those_of_the_best_evaluation(trained, words):
    best = json.loads(trained.metrics.read_text())["best"]
    clips = read_keyword_clips(KeywordDataConfig(folder=str(words), clip_ms=200))["dev"]
    dev = load_clips(clips, 16000, 3200, words.parent / "clips", workers=1)
    model = load_keyword_model(trained.path)
    predicted = model.logits(dev.samples).argmax(axis=1)
    assert model.labels == LABELS and model.clip_samples == 3200 and model.features == FEATURES
    assert np.mean(predicted == targets_of(dev.clips, LABELS)) == pytest.approx(best["dev_accuracy"])
    assert best["dev_accuracy"] > 0.8, "two tones are easily distinguished"


def test_the_last_weights_are_tested_after_the_training(trained, words):
    """As in the original: in per cent, on the test split, with the weights of the last step."""
    clips = read_keyword_clips(KeywordDataConfig(folder=str(words), clip_ms=200))["test"]
    store = load_clips(clips, 16000, 3200, words.parent / "clips", workers=1)
    predicted = load_keyword_model(trained.path, "last").logits(store.samples).argmax(axis=1)
    accuracy = float(np.mean(predicted == targets_of(store.clips, LABELS)))
    written = float((trained.path / "accuracy_last.txt").read_text(encoding="utf-8"))
    assert written == pytest.approx(100 * accuracy, abs=1e-3)
    tested = json.loads(trained.metrics.read_text(encoding="utf-8"))["test"]
    assert tested == {"accuracy": pytest.approx(accuracy), "clips": len(clips)}


# ------------------------------------------------------------------ from another run


@pytest.fixture(scope="module")
def many_labels(words, tmp_path_factory) -> Path:
    """A run of 81 labels, two of which are words of the small corpus."""
    labels = (*(f"word_{number:02d}" for number in range(79)), "low", "high")
    return write_keyword_run(tmp_path_factory.mktemp("runs") / "many", words, labels)


def test_from_81_labels_to_two_with_frozen_layers(many_labels, words, empty_config, tmp_path):
    """The two labels keep their weights, in another order; frozen layers stay as they are."""
    source, log = load_keyword_model(many_labels), RunFolder(tmp_path / "run").log
    places = [source.labels.index(label) for label in ("high", "low")]
    names = [name for name in named_layers(source.model) if name != "logits"]
    more = (f"initialise_from={many_labels}", "data.silence_share=0", "training.epochs=1")
    overrides = settings(words, *more, f"freeze=[{','.join(names)}]", "optimiser.learning_rate=0.001")
    train_from_config("keyword", empty_config, overrides, tmp_path / "run")
    trained = load_keyword_model(tmp_path / "run", "last")
    assert trained.labels == ("high", "low")
    for name in names:
        theirs, ours = (
            named_layers(trained_model.model)[name].get_weights() for trained_model in (source, trained)
        )
        assert all(map(np.array_equal, theirs, ours))
    old, new = (
        trained_model.model.get_layer("logits").get_weights()[0] for trained_model in (source, trained)
    )
    assert 0 < np.abs(new - old[:, places]).max() < 0.02, "five steps from the initial columns"

    overrides = settings(words, *more, "optimiser.learning_rate=0", "optimiser.weight_decay=0")
    train_from_config("keyword", empty_config, overrides, tmp_path / "unmoved")
    unmoved = load_keyword_model(tmp_path / "unmoved", "last").model.get_layer("logits").get_weights()
    for ours, theirs in zip(unmoved, source.model.get_layer("logits").get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs[..., places])
    text = log.read_text(encoding="utf-8")
    assert "2 tokens kept, 79 dropped (word_00, word_01," in text


def test_samples_train_too(words, empty_config, tmp_path):
    """With features of the kind raw the model takes samples and gives the logits of separate features."""
    overrides = settings(words, "features.kind=raw", "training.epochs=1", "training.evaluation_steps=1")
    run = RunFolder(tmp_path / "raw")
    train_from_config("keyword", empty_config, overrides, run.path)
    model = load_keyword_model(run.path)
    assert model.model.input_shape == (None, 3200)
    config = {**run.config(), "features": to_plain(FEATURES)}
    beside = RunFolder(shutil.copytree(run.path, tmp_path / "features"))
    write_json(beside.config_file, config)
    samples = np.random.default_rng(0).uniform(-0.3, 0.3, (2, 3200)).astype(np.float32)
    offline = load_keyword_model(beside.path).logits(samples)
    np.testing.assert_allclose(model.logits(samples), offline, atol=1e-3)


def test_a_run_is_resumed_only_with_the_same_recordings(empty_config, tmp_path):
    words = write_tiny_words(tmp_path / "words", takes=1)
    overrides = settings(words, "training.epochs=1", "training.evaluation_steps=1")
    run = RunFolder(tmp_path / "run")
    train_from_config("keyword", empty_config, overrides, run.path)
    run.metrics.unlink()
    train_from_config("keyword", empty_config, overrides, run.path)  # nothing has changed
    run.metrics.unlink()
    for split, speaker in (("train", "dora"), ("test", "gina")):
        (words / split / "low" / f"{speaker}_nohash_0.wav").unlink()
    with pytest.raises(RunError, match="the recordings of train, test are not those that") as caught:
        train_from_config("keyword", empty_config, overrides, run.path)
    assert caught.value.where == run.path and "put the recordings back" in caught.value.hint


@pytest.mark.parametrize(
    ("overrides", "error", "message"),
    [
        (("data.folder=''",), ConfigError, "no recordings are given"),
        (("training.evaluation_steps=0",), ConfigError, r"training\.evaluation_steps is 0, .*at least 1"),
        (("training.label_smoothing=1",), ConfigError, r"label_smoothing is 1\.0, .*at least 0 and below 1"),
        (("model.name=cnm",), ConfigError, "did you mean 'cnn'"),
        (
            ("optimiser.schedule=stages", "optimiser.stages=[{steps: 12, learning_rate: 0.1}]"),
            ConfigError,
            r"have 12 steps, training\.epochs=2 evaluations after 5 steps each, .*training\.epochs=3",
        ),
        (("data.clip_ms=30",), ConfigError, "clip of 480 samples is shorter than one window of 40 ms"),
    ],
)
def test_a_recipe_that_cannot_be_trained_is_refused_with_the_reason(
    words, empty_config, tmp_path, overrides, error, message
):
    with pytest.raises(error, match=message):
        train_from_config("keyword", empty_config, settings(words, *overrides), tmp_path / "run")


# ------------------------------------------------------------------ batches


def test_each_pass_takes_every_clip_once_in_another_order(store):
    batches, clips = batches_of(store, size=7), len(store.clips)
    drawn = [id for step in range(3 * clips) for id in batches.batch(step).ids][: 6 * clips]
    passes = [drawn[start : start + clips] for start in range(0, len(drawn), clips)]
    assert all(sorted(ids) == sorted(clip.id for clip in store.clips) for ids in passes)
    assert all(ids != following for ids, following in itertools.pairwise(passes))


def test_a_batch_depends_on_its_step_alone(store):
    whole = list(batches_of(store).between(0, 6))
    later = list(batches_of(store).between(4, 6))
    for batch, other in zip(whole[4:], later, strict=True):
        assert batch.ids == other.ids
        np.testing.assert_array_equal(batch.features, other.features)
        np.testing.assert_array_equal(batch.targets, other.targets)
    assert not np.array_equal(whole[0].features, whole[1].features)
    other_seed = batches_of(store, seed=6).batch(0)
    assert other_seed.ids != whole[0].ids


def test_targets_and_features_are_those_of_the_clips(store):
    """Without augmentation a batch has the output of keyword_features and the label of each clip."""
    quiet = KeywordAugmentConfig(shift_ms=0, speed_probability=0, noise_probability=0, gain_db=(0.0, 0.0))
    unmasked = SpecAugmentConfig(frequency_masks=0, time_masks=0)
    batch = batches_of(store, augment=quiet, spec_augment=unmasked).batch(2)
    rows = {clip.id: row for row, clip in enumerate(store.clips)}
    for id, features, target in zip(batch.ids, batch.features, batch.targets, strict=True):
        row = rows[id]
        samples = store.samples[row].astype(np.float32) / 32768
        np.testing.assert_allclose(features, keyword_features(samples, FEATURES), atol=1e-5)
        assert LABELS[target] == store.clips[row].label


# ------------------------------------------------------------------ kills


def _content(run: RunFolder) -> dict[str, object]:
    return {
        "best": weights_of(run.best_weights),
        "last": weights_of(run.last_weights),
        "kept": {path.name: weights_of(path) for path in run.kept_weights.iterdir()},
        "state": state_of(run.checkpoint),
        "history": [line.rpartition(",")[0] for line in run.history.read_text().splitlines()],
        "accuracy": (run.path / "accuracy_last.txt").read_text(),
    }


@pytest.mark.nightly
def test_a_training_killed_between_two_evaluations_ends_with_the_same_result(commands, words, empty_config):
    """SIGKILL after 6 of 15 steps, one after the first evaluation; averaged weights and dropout included."""
    more = ("training.epochs=3", "training.deterministic=true", "training.checkpoint_steps=3")
    more += ("optimiser.average=0.9",)

    def arguments(run: RunFolder) -> list[object]:
        return ["keyword", "--config", empty_config, "--run", run.path, *settings(words, *more)]

    whole, killed = (RunFolder(commands.folder / f"keyword_{name}") for name in ("whole", "killed"))
    ended = commands.run("train", *arguments(whole))
    assert ended.code == 0, ended.output

    def after_six_steps() -> bool:
        return killed.checkpoint.is_file() and state_of(killed.checkpoint)["state"]["step"] >= 6

    first = commands.run("train", *arguments(killed), condition=after_six_steps)
    assert first.code == -9 and not killed.metrics.exists(), first.output
    again = commands.run("train", *arguments(killed))
    assert again.code == 0, again.output
    assert re.search(r"resumed at epoch 2, step [6-9]|resumed at epoch 3", again.output)
    assert _content(killed) == _content(whole)
    assert not temporary_files(killed.path)


# ------------------------------------------------------------------ loading


@pytest.fixture
def run(words, tmp_path) -> RunFolder:
    return RunFolder(write_keyword_run(tmp_path / "run", words))


def test_a_run_that_was_moved_is_loaded_without_its_recordings(run, tmp_path):
    before = load_keyword_model(run.path).logits(np.zeros((2, 3200), np.float32))
    moved = load_keyword_model(run.path.rename(tmp_path / "moved")).logits(np.zeros((2, 3200), np.int16))
    np.testing.assert_array_equal(before, moved)
    assert before.shape == (2, 3) and before.dtype == np.float32


@pytest.mark.parametrize("part", ["labels.txt", "best.weights.h5", "config.yaml"])
def test_a_missing_part_is_named(run, part):
    (run.path / part).unlink()
    with pytest.raises(RunError, match=part):
        load_keyword_model(run.path)
    assert any(part in f"{finding.where} {finding.item} {finding.detail}" for finding in examine_run(run)), (
        "doctor.py names it too"
    )


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (("_silence_", "low", "high"), r"in another order: label 2 is high, there low"),
        (("_silence_", "high", "low", "deep"), r"belong to other labels \(with deep\)"),
    ],
)
def test_weights_of_other_labels_are_refused(run, words, tmp_path, labels, message):
    other = RunFolder(write_keyword_run(tmp_path / "other", words, labels))
    kept = other.kept_weights / "step_000005_accuracy_0.5000.weights.h5"
    kept.parent.mkdir()
    shutil.copy(other.best_weights, kept)
    checksums.accept(other.path)
    for path in (other.best_weights, kept):
        with pytest.raises(RunError, match=message):
            load_keyword_model(run.path, str(path))
    other.labels.unlink()  # what the weights show without a config
    if len(labels) > 3:
        with pytest.raises(RunError, match="the weights have 4 labels, the model has 3"):
            load_keyword_model(run.path, str(other.best_weights))


def test_weights_of_another_model_are_refused(run, words, tmp_path):
    config = {**run.config(), "model": {**run.config()["model"], "units": [9]}}
    other = RunFolder(shutil.copytree(run.path, tmp_path / "wider"))
    write_json(other.config_file, config)
    with pytest.raises(RunError, match=r"the weights belong to another model than config\.yaml says"):
        load_keyword_model(other.path)


def test_labels_files_that_are_damaged_are_refused(run):
    for text in ("", "a\na\n", "a\n\nb\n"):
        write_text(run.labels, text)
        with pytest.raises(RunError, match="labels is damaged"):
            load_keyword_model(run.path)
