"""Tests of distillation in a training: a model for streams learns from one of whole utterances."""

import csv
from collections.abc import Iterator
from pathlib import Path

import keras
import numpy as np
import pytest

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
        assert batch.teacher_lengths[row] == frames
        found = batch.teacher_features[row, :frames]
        assert any(len(copy) == frames and (copy == found).all() for copy in copies)
        assert not batch.teacher_features[row, frames:].any()


class Frames(keras.Layer):
    """Logits that give the number of the feature frame at which each logit frame begins, as a token's."""

    def __init__(self, stride: int, spikes: list[int]):
        super().__init__()
        self.stride, self.spikes = stride, spikes

    def call(self, inputs, training=False):
        features = inputs["features"][:, :: self.stride]
        spikes = keras.ops.isin(features[:, :, :1], self.spikes)
        return keras.ops.concatenate([features[:, :, :1], keras.ops.where(spikes, -50.0, 50.0)], axis=-1)


@pytest.mark.parametrize(
    ("student", "stride", "spikes", "expected"),
    [
        # 40 ms beside 80 ms, both from the start: two of the teacher's frames in each of the student's.
        (FeatureConfig(frame_ms=25, hop_ms=10), 8, [4, 16], [4, 8, 16, 24]),
        # Frames of 105 ms begin 40 ms later: the sound of the student's first frame is the teacher's second.
        (FeatureConfig(frame_ms=105, hop_ms=10), 8, [], [4, 12, 20, 28]),
        # 72 ms: the teacher's frames have their middles at 27.5, 67.5 … ms; 2, 2, 1, 2 and 2 are in a frame.
        (FeatureConfig(frame_ms=25, hop_ms=9), 8, [16, 24, 32], [0, 8, 16, 24, 32]),
        # The teacher's frames end at 360 ms; the last one is repeated.
        (FeatureConfig(frame_ms=25, hop_ms=10), 4, [], [0, 4, 8, 12, 16, 20, 24, 28, 32, 32]),
    ],
)
def test_frames_of_the_teacher_at_the_same_sound(student, stride, spikes, expected):
    of_teacher = FeatureConfig(frame_ms=25, hop_ms=10)
    seconds = stride * student.hop_seconds
    start = student.frame_samples / 16000 / 2 - student.hop_seconds / 2
    teacher = Teacher(Frames(4, spikes), of_teacher, np.array([0, 1]), 1.0, 4, seconds, start)
    features = np.tile(np.arange(48, dtype=np.float32)[None, :, None], (2, 1, 1))
    logits = np.asarray(teacher.logits(features, np.array([36, 48], np.int32), len(expected)))
    assert logits[0, :, 0].tolist() == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["features.hop_ms=8"], "the teacher has a logit frame every 80 ms, the model every 64 ms"),
        (["features.sample_rate=8000"], "the teacher has features of 16,000 Hz, the model of 8,000 Hz"),
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
    config = DistillationConfig(str(teacher))
    found = Teacher.load(config, FeatureConfig(bins=16), CompactStreamingConfig(), Vocabulary(tokens))
    features = np.random.default_rng(0).normal(size=(2, 24, 16)).astype(np.float32)
    logits = np.asarray(found.logits(features, np.array([24, 24], np.int32), 3))
    theirs = np.asarray(found.model({"features": features, "lengths": np.array([24, 24])}))
    np.testing.assert_array_equal(logits[..., 1:-1], theirs[..., :-1][..., ::-1])
    np.testing.assert_array_equal(logits[..., -1], theirs[..., -1])
    assert (logits[..., 0] < -1e29).all()


def test_a_teacher_of_other_tokens_is_refused(teacher):
    vocabulary = Vocabulary(("a", "b", "c", " ", "_"))
    with pytest.raises(ConfigError, match=r"the teacher does not know 3 of 5 tokens \(a, b, c\)"):
        Teacher.load(DistillationConfig(str(teacher)), FeatureConfig(), CompactStreamingConfig(), vocabulary)
