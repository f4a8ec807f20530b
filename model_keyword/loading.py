"""A keyword run's folder → its model with front end settings and labels, ready to recognise clips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np

from model_keyword.labels import describe_difference, labels_hash, read_labels
from model_keyword.registry import MODELS, build_keyword_model
from utils.backend.prediction import prepare_prediction
from utils.backend.weights import load_weights
from utils.errors import ConfigError, RunError
from utils.features.keyword import KeywordFeatureConfig, describe_mismatch, keyword_features
from utils.run_folder.run import ENVIRONMENT, RunFolder, open_run

BATCH = 128  # clips that go through the model together

LABELS_HASH = "labels_hash"
"""Where config.yaml's environment says which labels the run was trained with."""


@dataclass(frozen=True)
class KeywordModel:
    """A keyword model with all that belongs to it.

    Attributes:
        model: features (B, T, F), or samples (B, S) of the kind ``raw`` → logits (B, labels).
        features: settings of the front end that it was trained on.
        labels: of its outputs, in their order.
        clip_samples: length of a clip at ``features.sample_rate``.
        context_samples: sound before a clip that the model hears too.
        config: the run's config.yaml as plain values.
    """

    model: keras.Model
    features: KeywordFeatureConfig
    labels: tuple[str, ...]
    clip_samples: int
    context_samples: int
    config: Mapping[str, Any]

    def logits(self, samples: np.ndarray) -> np.ndarray:
        """Clips (N, clip_samples), int16 or float32 in [-1, 1] → logits (N, labels) float32."""
        parts = [
            logits_of(self.model, self.inputs(samples[start : start + BATCH]))
            for start in range(0, len(samples), BATCH)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.labels)), np.float32)

    def inputs(self, samples: np.ndarray) -> np.ndarray:
        """Clips (N, clip_samples) → what the model takes: (N, T, F), or samples of the kind ``raw``."""
        return keyword_features(after_silence(as_float(samples), self.context_samples), self.features)


def keyword_parts(run: RunFolder) -> list[Path]:
    """The files that :func:`load_keyword_model` reads beside config.yaml."""
    return [run.labels, run.best_weights]


def load_keyword_model(
    run: str | Path, weights: str = "best", features: KeywordFeatureConfig | None = None
) -> KeywordModel:
    """Build the model of a keyword run and load its weights; needs the run folder and nothing more.

    Args:
        run: the folder that the training wrote.
        weights: ``best``, ``last``, or the path of a weights file of the same model and labels.
        features: the settings of the front end that clips will come from, if they are not the run's own.

    Raises:
        ConfigError: ``features`` differ from those of the training; each setting is named with both values.
        RunError: a part of the folder is missing or damaged, or the weights don't fit.
    """
    folder = open_run(run, "keyword")
    trained = folder.section("features", KeywordFeatureConfig)
    refuse_other_features(trained, features, folder.path)
    labels = read_labels(folder.part(folder.labels))
    config = folder.config()
    if labels_hash(labels) != _recorded_hash(config):
        hint = "the order of its lines is that of the model's outputs: copy it from the run again"
        raise RunError("labels.txt is not the one of the training", where=folder.labels, hint=hint)
    name = str((config.get("model") or {}).get("name"))
    if name not in MODELS:
        hint = f"known: {', '.join(MODELS)}"
        raise RunError(f"unknown model '{name}'", where=folder.config_file, hint=hint)
    model_config = folder.section("model", MODELS[name].config)
    path = folder.weights(weights)
    _check_labels(labels, folder, path)
    clip_samples, context_samples = _lengths(folder, config, trained.sample_rate)
    model = build_keyword_model(model_config, trained, clip_samples, len(labels), context_samples)
    prepare_prediction(model)
    load_weights(model, path, lambda classes: _explain_classes(classes, path, labels))
    return KeywordModel(model, trained, labels, clip_samples, context_samples, config)


def refuse_other_features(
    trained: KeywordFeatureConfig, asked: KeywordFeatureConfig | None, where: object
) -> None:
    """Raise ConfigError, with both values of each setting, if ``asked`` isn't what the training had."""
    if asked is not None and asked != trained:
        what = f"the model was trained on other features ({describe_mismatch(trained, asked)})"
        hint = "leave the setting out, or train a model with it"
        raise ConfigError(what, where=where, hint=hint)


def logits_of(model: keras.Model, features: np.ndarray) -> np.ndarray:
    """Features of clips (N, T, F), or samples (N, S) → logits (N, labels) float32, a batch at a time."""
    starts = range(0, len(features), BATCH)
    return np.concatenate([model.predict_on_batch(features[start : start + BATCH]) for start in starts])


def as_float(samples: np.ndarray) -> np.ndarray:
    """int16 → float32 in [-1, 1); floats stay as they are."""
    return samples.astype(np.float32) / 32768 if samples.dtype == np.int16 else samples


def after_silence(samples: np.ndarray, context_samples: int) -> np.ndarray:
    """Clips (N, S) with digital silence before them, where the model hears more than the clip."""
    return np.pad(samples, ((0, 0), (context_samples, 0)))


def shifted(samples: np.ndarray, shift: int) -> np.ndarray:
    """Clips (N, S), each later by ``shift`` samples (earlier, where it is negative); zeros come in."""
    moved, length = np.zeros_like(samples), samples.shape[1]
    start, end = max(shift, 0), min(length + shift, length)
    if start < end:
        moved[:, start:end] = samples[:, start - shift : end - shift]
    return moved


def accuracies_by_shift(
    keyword: KeywordModel, samples: np.ndarray, references: np.ndarray, shifts_ms: Sequence[int]
) -> dict[int, float]:
    """Accuracy of whole clips that begin earlier or later than those of the training.

    Args:
        keyword: the model.
        samples: clips (N, clip_samples), int16 or float32 in [-1, 1].
        references: (N,) int, the index of each clip's label.
        shifts_ms: milliseconds; a negative one moves the clip to an earlier time.

    Returns:
        Shift in milliseconds → share of the clips that are right.
    """
    found = {}
    for shift_ms in shifts_ms:
        moved = shifted(samples, round(shift_ms / 1000 * keyword.features.sample_rate))
        found[shift_ms] = float((keyword.logits(moved).argmax(axis=1) == references).mean())
    return found


def samples_of(clip_ms: float, sample_rate: int) -> int:
    """Samples of a clip."""
    return round(clip_ms * sample_rate / 1000)


def _recorded_hash(config: Mapping[str, Any]) -> str:
    return str((config.get(ENVIRONMENT) or {}).get(LABELS_HASH))


def _lengths(folder: RunFolder, config: Mapping[str, Any], sample_rate: int) -> tuple[int, int]:
    """Samples of a clip, and of what is heard before it."""
    data = config.get("data") or {}
    lengths = []
    for name, least in (("clip_ms", 1), ("context_ms", 0)):
        found = data.get(name, 0)
        if not isinstance(found, int | float) or found < least:
            what = f"config.yaml is damaged (data.{name} is {found})"
            raise RunError(what, where=folder.path, hint="copy the run folder again")
        lengths.append(samples_of(found, sample_rate))
    return lengths[0], lengths[1]


def _check_labels(labels: Sequence[str], folder: RunFolder, path: Path) -> None:
    # Weights of another run bring their own labels, beside them or (weights of one step) a folder above.
    theirs = next(
        (found for above in path.parents[:2] if (found := RunFolder(above).labels).is_file()), folder.labels
    )
    if read_labels(theirs) != tuple(labels):
        what = f"the weights belong to other labels ({describe_difference(labels, read_labels(theirs))})"
        raise RunError(what, where=path, hint=f"give weights trained with the labels of {folder.labels}")


def _explain_classes(classes: int, path: Path, labels: Sequence[str]) -> RunError:
    what = f"the weights have {classes} labels, the model has {len(labels)}"
    return RunError(what, where=path, hint="take the whole folder of the run that the weights come from")
