"""Loads the model of a keyword run folder with its weights, feature settings and labels; runs it on clips."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np

from model_keyword.labels import describe_difference, read_labels
from model_keyword.layers.front_end import settings_inside
from model_keyword.registry import MODELS, build_keyword_model
from utils.audio.reading import INT16_SCALE
from utils.backend.prediction import prepare_prediction
from utils.backend.weights import load_weights
from utils.errors import ConfigError, RunError
from utils.features.keyword import KeywordFeatureConfig, keyword_features
from utils.run_folder.run import RunFolder, open_run

BATCH = 128  # clips in a prediction batch


@dataclass(frozen=True)
class KeywordModel:
    """A keyword model with its front end and labels.

    Attributes:
        model: features (B, T, F), or samples (B, S) for the kind ``raw`` → logits (B, labels).
        features: settings of the front end, as in the training.
        labels: the labels in the order of the outputs.
        clip_samples: length of a clip at ``features.sample_rate``.
        context_samples: length of the sound before a clip that is part of the model's input.
    """

    model: keras.Model
    features: KeywordFeatureConfig
    labels: tuple[str, ...]
    clip_samples: int
    context_samples: int

    def logits(self, samples: np.ndarray) -> np.ndarray:
        """Clips (N, clip_samples), int16 or float32 in [-1, 1] → logits (N, labels) float32."""
        parts = [
            logits_of(self.model, self.inputs(samples[start : start + BATCH]))
            for start in range(0, len(samples), BATCH)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.labels)), np.float32)

    def inputs(self, samples: np.ndarray) -> np.ndarray:
        """Clips (N, clip_samples) → inputs of the model: (N, T, F), or samples for the kind ``raw``."""
        return keyword_features(after_silence(as_float(samples), self.context_samples), self.features)


def load_keyword_model(run: str | Path, weights: str = "best", samples: bool = False) -> KeywordModel:
    """Build the model of a keyword run and load its weights; only the run folder is needed.

    Args:
        run: the folder that the training wrote.
        weights: ``best``, ``last``, or the path of a weights file of the same model and labels.
        samples: whether the model takes samples, with its front end inside, whatever it was trained on; its
            features are then of the kind ``raw``.

    Raises:
        RunError: a part of the folder is missing or damaged, or the weights do not fit.
        ConfigError: the features can't be computed inside a model.
    """
    folder = open_run(run, "keyword")
    trained = folder.section("features", KeywordFeatureConfig)
    labels = read_labels(folder.part(folder.labels))
    name = str((folder.config().get("model") or {}).get("name"))
    if name not in MODELS:
        raise RunError(
            f"unknown model '{name}'", where=folder.config_file, hint=f"known: {', '.join(MODELS)}"
        )
    model_config: Any = folder.section("model", MODELS[name].config)
    path = folder.weights(weights)
    _check_labels(labels, folder, path)
    clip_samples, context_samples = _lengths(folder, trained.sample_rate)
    if samples:
        trained = settings_inside(trained)
    model = build_keyword_model(model_config, trained, clip_samples, len(labels), context_samples)
    prepare_prediction(model)
    load_weights(model, path, lambda classes: _explain_classes(classes, path, labels))
    return KeywordModel(model, trained, labels, clip_samples, context_samples)


def refuse_other_lengths(keyword: KeywordModel, clip_ms: float, context_ms: float, where: object) -> None:
    """Raise ConfigError, with both lengths, if clips or the context before them differ from the training."""
    rate = keyword.features.sample_rate
    for name, requested_ms, trained in (
        ("clip_ms", clip_ms, keyword.clip_samples),
        ("context_ms", context_ms, keyword.context_samples),
    ):
        if samples_of(requested_ms, rate) != trained:
            raise ConfigError(
                f"the model was trained with another data.{name} ({1000 * trained / rate:g} in training, "
                f"{requested_ms:g} asked for)",
                where=where,
                hint="leave the setting out, or train a model with it",
            )


def logits_of(model: keras.Model, features: np.ndarray) -> np.ndarray:
    """Features of clips (N, T, F), or samples (N, S) → logits (N, labels) float32, in batches."""
    starts = range(0, len(features), BATCH)
    return np.concatenate([model.predict_on_batch(features[start : start + BATCH]) for start in starts])


def as_float(samples: np.ndarray) -> np.ndarray:
    """int16 of any shape → float32 in [-1, 1); floats are returned unchanged."""
    return samples.astype(np.float32) / np.float32(INT16_SCALE) if samples.dtype == np.int16 else samples


def after_silence(samples: np.ndarray, context_samples: int) -> np.ndarray:
    """Clips (N, S) with ``context_samples`` of digital silence before them."""
    return np.pad(samples, ((0, 0), (context_samples, 0)))


def shifted(samples: np.ndarray, shift: int) -> np.ndarray:
    """Clips (N, S), moved by ``shift`` samples (earlier, if negative) and filled with zeros."""
    moved, length = np.zeros_like(samples), samples.shape[1]
    start, end = max(shift, 0), min(length + shift, length)
    if start < end:
        moved[:, start:end] = samples[:, start - shift : end - shift]
    return moved


def accuracies_by_shift(
    keyword: KeywordModel, samples: np.ndarray, references: np.ndarray, shifts_ms: Sequence[int]
) -> dict[int, float]:
    """Accuracy of whole clips that are moved in time.

    Args:
        keyword: the model.
        samples: clips (N, clip_samples), int16 or float32 in [-1, 1].
        references: (N,) int, the index of each clip's label.
        shifts_ms: milliseconds; a negative one moves the clip to an earlier time.

    Returns:
        Shift in milliseconds → accuracy.
    """
    accuracies = {}
    for shift_ms in shifts_ms:
        moved = shifted(samples, round(shift_ms / 1000 * keyword.features.sample_rate))
        accuracies[shift_ms] = float((keyword.logits(moved).argmax(axis=1) == references).mean())
    return accuracies


def samples_of(clip_ms: float, sample_rate: int) -> int:
    """Number of samples in a clip of ``clip_ms`` milliseconds."""
    return round(clip_ms * sample_rate / 1000)


def _lengths(folder: RunFolder, sample_rate: int) -> tuple[int, int]:
    """Samples of a clip, and of the context before it."""
    data = folder.config().get("data") or {}
    lengths = []
    for name, lowest in (("clip_ms", 1), ("context_ms", 0)):
        length_ms = data.get(name, 0)
        if not isinstance(length_ms, int | float) or length_ms < lowest:
            raise RunError(
                f"config.yaml is damaged (data.{name} is {length_ms})",
                where=folder.path,
                hint="copy the run folder again",
            )
        lengths.append(samples_of(length_ms, sample_rate))
    return lengths[0], lengths[1]


def _check_labels(labels: Sequence[str], folder: RunFolder, path: Path) -> None:
    # The labels of the weights' own run: in the same folder, or (weights of one step) in its parent.
    candidates = (RunFolder(parent).labels for parent in path.parents[:2])
    weight_labels = read_labels(next(filter(Path.is_file, candidates), folder.labels))
    if weight_labels != tuple(labels):
        raise RunError(
            f"the weights belong to other labels ({describe_difference(labels, weight_labels)})",
            where=path,
            hint=f"give weights trained with the labels of {folder.labels}",
        )


def _explain_classes(classes: int, path: Path, labels: Sequence[str]) -> RunError:
    return RunError(
        f"the weights have {classes} labels, the model has {len(labels)}",
        where=path,
        hint="take the whole folder of the run that the weights come from",
    )
