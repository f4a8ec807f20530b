"""Tests of distillation in a training: a model for streams learns from one of whole utterances."""

import csv
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from data.features.augment import AugmentConfig
from data.features.cache import prepare_features
from data.manifest import read_manifest
from model_speech.acoustic_model import load_acoustic_model
from tests.support.tiny_corpus import write_tiny_corpus
from training import distillation, feature_shards
from training.distillation import CLASSES, DistillationConfig, Teacher, load_teacher
from training.run import train_from_config
from training.tasks.speech import SpeechTask
from utils.arrays import softmax
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
        "model: {name: compact_streaming, look_ahead: 16, ahead_blocks: 1}\n"
        "features: {normalise: running_ltass}\n",
        encoding="utf-8",
    )
    return recipe


def divergence(teacher: Path, student: Path, manifest: Path) -> float:
    """Mean KL divergence of the frames of the recordings, over the classes that are stored, in nats."""
    total, count, utterances = 0.0, 0, read_manifest(manifest)
    models = [load_acoustic_model(teacher), load_acoustic_model(student, "last")]
    caches = [prepare_features(utterances, each.features, manifest.parent / "features") for each in models]
    for utterance in utterances:
        outputs = [
            model.logits([cache.features(utterance.id)]) for model, cache in zip(models, caches, strict=True)
        ]
        p, q = (softmax(logits[0, : lengths[0]]) for logits, lengths in outputs)
        stored = np.argsort(-p, axis=1)[:, :CLASSES]
        p, q = (np.take_along_axis(each, stored, axis=1) for each in (p, q))
        p /= p.sum(axis=1, keepdims=True)
        total += (p * np.log(p / q)).sum()
        count += len(p)
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
    assert distillation._load.cache_info().currsize == 0  # no memory for the network of the teacher


def test_a_batch_has_the_copy_that_the_student_gets(corpus, teacher, student, tmp_path, monkeypatch):
    batches = []
    arrays = SpeechTask.arrays

    def recorded(self, batch):
        batches.append(batch)
        return arrays(self, batch)

    monkeypatch.setattr(SpeechTask, "arrays", recorded)
    changes = [f"distillation.teacher={teacher}", "training.epochs=1"]
    train_from_config("speech", student, [*SIZE, *lists(corpus), *changes], tmp_path / "run")
    batch, model = batches[0], load_acoustic_model(teacher)
    copies = AugmentConfig(copies=1)
    cache = prepare_features(read_manifest(corpus), model.features, corpus.parent / "features", copies)
    for row, (name, frames) in enumerate(zip(batch.ids, batch.feature_lengths, strict=True)):
        count = -(-frames // 8)
        found = (batch.teacher_classes[row, :count], batch.teacher_probabilities[row, :count])
        outputs = [model.logits([cache.features(name, copy)]) for copy in range(2)]
        logits = [each[0, : lengths[0]] for each, lengths in outputs]
        expected = [np.take_along_axis(softmax(each), found[0], 1) for each in logits if len(each) == count]
        expected = [each / each.sum(axis=1, keepdims=True) for each in expected]
        assert any(np.allclose(each, found[1], atol=2e-3) for each in expected)
        assert not batch.teacher_probabilities[row, count:].any()


def test_outputs_that_were_prepared_beforehand_are_used(corpus, teacher, student, tmp_path):
    settings = [*SIZE, *lists(corpus)[:2], f"data.cache={tmp_path / 'features'}", "training.epochs=1"]
    settings.append(f"distillation.teacher={teacher}")
    assert feature_shards.main(["--config", str(student), *settings]) == 0
    (folder,) = (tmp_path / "features").glob("teacher-*")
    prepared = sorted(folder.glob("*.npy"))
    train_from_config("speech", student, settings, tmp_path / "run")
    assert prepared and sorted(folder.glob("*.npy")) == prepared


def targets_of(
    stored: np.ndarray, probabilities: np.ndarray, frames: int, **settings
) -> tuple[np.ndarray, ...]:
    """Targets for a student, of stored outputs (T, K)."""
    packed = np.zeros((len(stored), 2 * CLASSES), np.float16)
    packed[:, : stored.shape[1]] = stored.astype(np.uint16).view(np.float16)
    packed[:, CLASSES : CLASSES + stored.shape[1]] = probabilities
    outputs = SimpleNamespace(features=lambda utterance, copy: packed)
    return Teacher(outputs, **settings).targets("a", 0, frames)


@pytest.mark.parametrize(
    ("student", "stride", "spikes", "expected"),
    [
        # 40 ms beside 80 ms, both from the start: two of the teacher's frames in each of the student's.
        (FeatureConfig(frame_ms=25, hop_ms=10), 8, [1, 4], [1, 2, 4, 6]),
        # Frames of 105 ms begin 40 ms later: the sound of the student's first frame is the teacher's second.
        (FeatureConfig(frame_ms=105, hop_ms=10), 8, [], [1, 3, 5, 7]),
        # 72 ms: the teacher's frames have their middles at 27.5, 67.5 … ms; 2, 2, 1, 2 and 2 are in a frame.
        (FeatureConfig(frame_ms=25, hop_ms=9), 8, [4, 6, 8], [0, 2, 4, 6, 8]),
        # The teacher has nine frames; the last one is repeated.
        (FeatureConfig(frame_ms=25, hop_ms=10), 4, [], [0, 1, 2, 3, 4, 5, 6, 7, 8, 8]),
    ],
)
def test_frames_of_the_teacher_at_the_same_sound(student, stride, spikes, expected):
    """The teacher's classes number its frames; where it has no spike, a blank is likely."""
    blank = np.where(np.isin(np.arange(9), spikes), 0.0, 0.5)
    stored = np.column_stack([np.full(9, 99), np.arange(9)])
    found, probabilities = targets_of(
        stored,
        np.column_stack([blank, 1 - blank]),
        len(expected),
        classes=np.arange(100),
        blank=99,
        seconds=(0.04, stride * student.hop_seconds),
        begins=(0.0125 - 0.005, student.frame_samples / 16000 / 2 - student.hop_seconds / 2),
        time_stride=stride,
    )
    assert found[:, 1].tolist() == expected
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


def test_classes_that_the_student_does_not_know_are_left_out():
    settings = {"blank": 0, "seconds": (0.04, 0.04), "begins": (0.0, 0.0), "time_stride": 4}
    stored, probabilities = np.array([[0, 1, 2], [2, 2, 2]]), np.array([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]])
    found = targets_of(stored, probabilities, 2, classes=np.array([4, 3, -1]), **settings)
    np.testing.assert_array_equal(found[0][0, :2], [4, 3])
    np.testing.assert_allclose(found[1][:, :3], [[2 / 3, 1 / 3, 0], [0, 0, 0]], rtol=1e-3)


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


def test_splicing_without_a_teacher_is_refused(corpus, student, tmp_path):
    settings = [*SIZE, *lists(corpus), "data.splice=0.5", "training.epochs=1"]
    with pytest.raises(ConfigError, match=r"data\.splice is 0\.5 without a teacher"):
        train_from_config("speech", student, settings, tmp_path / "run")


def test_a_training_on_spliced_utterances(corpus, teacher, student, tmp_path, monkeypatch):
    monkeypatch.setattr("training.splicing._SURE", -1.0)  # this teacher has learned little
    lengths = []
    arrays = SpeechTask.arrays

    def recorded(self, batch):
        lengths.extend(batch.feature_lengths.tolist())
        return arrays(self, batch)

    monkeypatch.setattr(SpeechTask, "arrays", recorded)
    settings = [*SIZE, *lists(corpus), f"distillation.teacher={teacher}", "training.epochs=2"]
    train_from_config("speech", student, settings, tmp_path / "whole")
    whole, lengths[:] = lengths.copy(), []
    train_from_config("speech", student, [*settings, "data.splice=0.9"], tmp_path / "spliced")
    assert len(lengths) == len(whole) and lengths != whole


def test_a_teacher_of_other_tokens_is_refused(teacher):
    vocabulary = Vocabulary(("a", "b", "c", " ", "_"))
    with pytest.raises(ConfigError, match=r"the teacher does not know 3 of 5 tokens \(a, b, c\)"):
        load_teacher(DistillationConfig(str(teacher)), FeatureConfig(), 8, vocabulary, [], ("", None, 1, 0))
