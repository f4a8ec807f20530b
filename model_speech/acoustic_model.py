"""Loads the Keras acoustic model of a speech run folder with its weights, feature settings and vocabulary."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np

from model_speech.ctc.loss import output_lengths
from model_speech.packed_run import is_packed
from model_speech.packed_weights import assign_weights, read_packed_weights
from model_speech.registry import MODELS
from utils.arrays import pad_rows
from utils.backend.prediction import predict, prepare_prediction
from utils.backend.weights import load_weights
from utils.errors import RunError
from utils.features.settings import FeatureConfig, feature_bins
from utils.run_folder.run import RunFolder, find_run, open_run
from utils.vocabulary import Vocabulary, explain_mismatch, transfer_command

PAD_MULTIPLE = 64  # frames: few different batch shapes, for backends that compile each one


@dataclass(frozen=True)
class AcousticModel:
    """A loaded acoustic model.

    Attributes:
        model: one of ``model_speech/models``: features and lengths → logits.
        features: settings of the features that it was trained on.
        vocabulary: the tokens of its classes, in the order of the logits.
        time_stride: feature frames per logit frame.
    """

    model: keras.Model
    features: FeatureConfig
    vocabulary: Vocabulary
    time_stride: int

    def logits(self, features: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """One batch: B feature arrays (frames, bins) → logits (B, T', classes) and lengths (B,) int32."""
        lengths = np.array([len(frames) for frames in features], dtype=np.int32)
        inner = features[0].shape[1:]
        batch = pad_rows(features, multiple=PAD_MULTIPLE, dtype=np.float32, inner=inner)  # (B, T, bins)
        logits = predict(self.model, {"features": batch, "lengths": lengths})
        return logits, output_lengths(lengths, self.time_stride)

    @property
    def frame_seconds(self) -> float:
        """Seconds between two logit frames."""
        return self.time_stride * self.features.hop_seconds


def load_acoustic_model(run: str | Path, weights: str = "best") -> AcousticModel:
    """Build the model of a speech run and load its weights; only the run folder is needed.

    Args:
        run: run folder.
        weights: ``best``, ``last``, or the path of a weights file with the same classes.

    Raises:
        RunError: a file is missing or damaged, or the weights don't match the vocabulary.
    """
    folder = open_run(run, "speech")
    vocabulary = Vocabulary.load(folder.part(folder.vocabulary("acoustic.txt")))
    if is_packed(folder) and weights == "best":
        path = folder.part(folder.packed_network)
        acoustic = build_acoustic_model(folder, vocabulary)
        assign_weights(acoustic.model, read_packed_weights(path), path)
        return acoustic
    path = folder.weights(weights)
    _check_vocabulary(vocabulary, folder, path)
    acoustic = build_acoustic_model(folder, vocabulary)
    load_weights(acoustic.model, path, lambda classes: _explain_classes(classes, path, vocabulary, folder))
    return acoustic


def build_acoustic_model(folder: RunFolder, vocabulary: Vocabulary) -> AcousticModel:
    """Build the model that a speech run's config describes, with the classes of ``vocabulary``, untrained.

    Raises:
        RunError: the config lacks a section or names an unknown model.
    """
    features, config = trained_settings(folder)
    model = MODELS[config.name].build(config, feature_bins(features), len(vocabulary))
    prepare_prediction(model)
    return AcousticModel(model, features, vocabulary, config.time_stride)


def trained_settings(folder: RunFolder) -> tuple[FeatureConfig, Any]:
    """The feature settings and the model config of a speech run.

    Raises:
        RunError: the config lacks a section or names an unknown model.
    """
    features = folder.section("features", FeatureConfig)
    name = str((folder.config().get("model") or {}).get("name"))
    if name not in MODELS:
        known = ", ".join(MODELS)
        raise RunError(f"unknown model '{name}'", where=folder.config_file, hint=f"known: {known}")
    return features, folder.section("model", MODELS[name].config)


def _check_vocabulary(vocabulary: Vocabulary, folder: RunFolder, weights: Path) -> None:
    """Raise RunError if the weights are of another run whose vocabulary differs, even with the same size."""
    source = find_run(weights)
    theirs = source.vocabulary("acoustic.txt") if source else None
    if source and theirs and theirs.is_file() and Vocabulary.load(theirs) != vocabulary:
        raise RunError(
            explain_mismatch(vocabulary, Vocabulary.load(theirs)),
            where=weights,
            hint="weights trained on another corpus, or on a part of it, have other classes; to move those "
            f"of the shared tokens over:\n  {_transfer_command(source.path, folder)}",
        )


def _transfer_command(weights_run: Path, folder: RunFolder) -> str:
    """The command that moves weights to another run's vocabulary, into a folder beside theirs."""
    if weights_run.name in ("", ".."):  # "." and ".." have no name to derive another from
        weights_run = weights_run.resolve()
    new_run = weights_run.with_name(f"{weights_run.name}_transferred")
    return transfer_command(weights_run, new_run, folder.vocabulary("acoustic.txt"))


def _explain_classes(classes: int, weights: Path, vocabulary: Vocabulary, folder: RunFolder) -> RunError:
    """The error for weights of a model with another number of classes."""
    return RunError(
        f"the weights have {classes} classes, the model has {len(vocabulary)}, the tokens of "
        "vocabulary/acoustic.txt: they come from a training with another vocabulary (of a part of the "
        "corpus, or of another corpus)",
        where=weights,
        hint="the run folder of that training says which token each class stands for: to move the shared "
        "tokens over, put it in place of WEIGHTS_RUN:\n  "
        f"{_transfer_command(Path('WEIGHTS_RUN'), folder)}",
    )
