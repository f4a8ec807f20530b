"""Tests of distillation in a training: a model for streams learns from one of whole utterances."""

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from data.batches.batching import BatchSource
from data.features.augment import AugmentConfig
from data.features.cache import prepare_features
from data.manifest import read_manifest
from model_speech.acoustic_model import load_acoustic_model
from model_speech.models.compact_streaming import CompactStreamingConfig
from tests.support.tiny_corpus import write_tiny_corpus
from training.distillation import DistillationConfig, Teacher
from training.run import train_from_config
from training.tasks.speech import SpeechTask
from utils.errors import ConfigError
from utils.features.settings import FeatureConfig
from utils.run_folder.run import RunFolder
from utils.vocabulary import Vocabulary

SIZE = ("model.width=8", "model.blocks=2", "features.bins=16", "data.workers=1", "augment.copies=1")
LONG = ("training.epochs=40", "optimiser.learning_rate=0.01")


def lists(manifest: Path) -> list[str]:
    return [
        f"data.train=[{manifest}]",
        f"data.dev=[{manifest}]",
        f"data.cache={manifest.parent / 'features'}",
    ]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    return write_tiny_corpus(tmp_path_factory.mktemp("corpus"), utterances=8)


@pytest.fixture(scope="module")
def teacher(corpus) -> Iterator[Path]:
    """A run of a model of whole utterances, with features that are normalised over the whole utterance."""
    recipe = corpus.parent / "teacher.yaml"
    recipe.write_text("model: {name: compact}\n", encoding="utf-8")
    run = corpus.parent / "teacher"
    train_from_config("speech", recipe, [*SIZE, *lists(corpus), *LONG], run)
    return run


@pytest.fixture
def student(tmp_path) -> Path:
    recipe = tmp_path / "student.yaml"
    recipe.write_text(
        "model: {name: compact_streaming, look_ahead: 16, ahead_blocks: 1}\nfeatures: {normalise: running}\n",
        encoding="utf-8",
    )
    return recipe


def divergence(teacher: Path, student: Path, manifest: Path) -> float:
    """Mean KL divergence of the frames of the recordings, in nats."""
    total, count, utterances = 0.0, 0, read_manifest(manifest)
    models = [load_acoustic_model(path, "last") for path in (teacher, student)]
    caches = [prepare_features(utterances, each.features, manifest.parent / "features") for each in models]
    for utterance in utterances:
        log_p, log_q = (
            rows - np.logaddexp.reduce(rows, axis=-1, keepdims=True)
            for model, cache in zip(models, caches, strict=True)
            for rows in [model.logits([cache.features(utterance.id)])[0][0].astype(np.float64)]
        )
        total += (np.exp(log_p) * (log_p - log_q)).sum()
        count += len(log_p)
    return total / count


def test_the_student_comes_closer_to_its_teacher(tmp_path, corpus, teacher, student):
    found, losses = {}, {}
    for weight in (0, 10):
        run = RunFolder(tmp_path / f"weight_{weight}")
        changes = [f"distillation.teacher={teacher}", f"distillation.weight={weight}", *LONG]
        train_from_config("speech", student, [*SIZE, *lists(corpus), *changes], run.path)
        found[weight] = divergence(teacher, run.path, corpus)
        losses[weight] = float(next(csv.DictReader(run.history.open(encoding="utf-8")))["train_loss"])
    assert found[10] < 0.7 * found[0]
    assert losses[10] > losses[0] + 1e-3  # the distillation loss is part of it
    recorded = RunFolder(tmp_path / "weight_10").config()["distillation"]
    assert recorded == {"teacher": str(teacher), "weight": 10}


def test_a_batch_has_the_copy_that_the_student_gets(corpus, teacher, student, tmp_path, monkeypatch):
    batches = []
    arrays = SpeechTask.arrays

    def recorded(self, batch):
        batches.append(batch)
        return arrays(self, batch)

    monkeypatch.setattr(SpeechTask, "arrays", recorded)
    changes = [f"distillation.teacher={teacher}", "training.epochs=1"]
    train_from_config("speech", student, [*SIZE, *lists(corpus), *changes], tmp_path / "run")
    batch = batches[0]
    settings = load_acoustic_model(teacher).features
    utterances = read_manifest(corpus)
    cache = prepare_features(utterances, settings, corpus.parent / "features", AugmentConfig(copies=1))
    for row, (name, frames) in enumerate(zip(batch.ids, batch.feature_lengths, strict=True)):
        copies = [cache.features(name, copy) for copy in range(2)]
        found = batch.teacher_features[row, :frames]
        assert any(len(copy) == frames and (copy == found).all() for copy in copies)
        assert not batch.teacher_features[row, frames:].any()


def test_features_of_a_teacher_are_those_of_the_same_sound(corpus, tmp_path):
    """A frame of 60 ms begins at the start of the recording; those of Whisper are centred there."""
    utterances, folder = read_manifest(corpus), tmp_path / "features"
    own = FeatureConfig(frame_ms=60)
    of_teacher = FeatureConfig(kind="whisper")
    caches = [prepare_features(utterances, features, folder) for features in (own, of_teacher)]
    teacher = Teacher(None, of_teacher, np.zeros(0, np.int32), 1.0)
    later = teacher.frames_later(own, copies=1)
    assert later == 3
    labels = [np.array([1], np.int32)] * len(utterances)
    source = BatchSource(caches[0], utterances, labels, 4000, 8, teacher_cache=caches[1], teacher_later=later)
    for batch in source.batches(1):
        for row, (name, frames) in enumerate(zip(batch.ids, batch.feature_lengths, strict=True)):
            whole = caches[1].features(name)
            np.testing.assert_array_equal(batch.teacher_features[row, : frames - 8], whole[3 : frames - 5])
            last = whole[min(frames + 2, len(whole) - 1)]
            np.testing.assert_array_equal(batch.teacher_features[row, frames - 1], last)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["features.hop_ms=8"], "the teacher has a feature frame every 10 ms, the model every 8 ms"),
        (["features.sample_rate=8000"], "the teacher hears 16,000 Hz, the model 8,000 Hz"),
        (["model.front_filters=[4]"], r"a logit frame for 8 feature frames, model\.\* has one for 4"),
    ],
)
def test_a_teacher_with_other_frames_is_refused(corpus, teacher, student, tmp_path, changes, message):
    settings = [*SIZE, *lists(corpus), f"distillation.teacher={teacher}", "training.epochs=1", *changes]
    with pytest.raises(ConfigError, match=message) as caught:
        train_from_config("speech", student, settings, tmp_path / "run")
    assert "distillation.teacher" in str(caught.value.where)
    assert not (tmp_path / "run").exists()


def test_tokens_are_matched_by_name(teacher):
    known = load_acoustic_model(teacher).vocabulary
    tokens = ("xyz1", *reversed(known.tokens[:-1]), known.tokens[-1])
    found = Teacher.load(DistillationConfig(str(teacher)), CompactStreamingConfig(), Vocabulary(tokens))
    features = np.random.default_rng(0).normal(size=(2, 24, 16)).astype(np.float32)
    logits = np.asarray(found.logits(features, np.array([24, 24])))
    theirs = np.asarray(found.model({"features": features, "lengths": np.array([24, 24])}))
    np.testing.assert_array_equal(logits[..., 1:-1], theirs[..., :-1][..., ::-1])
    np.testing.assert_array_equal(logits[..., -1], theirs[..., -1])
    assert (logits[..., 0] < -1e29).all()


def test_a_teacher_of_other_tokens_is_refused(teacher):
    vocabulary = Vocabulary(("a", "b", "c", " ", "_"))
    with pytest.raises(ConfigError, match=r"the teacher does not know 3 of 5 tokens \(a, b, c\)"):
        Teacher.load(DistillationConfig(str(teacher)), CompactStreamingConfig(), vocabulary)
