"""The keyword models by name: a config's ``name`` in, its config class, its builder and the whole model out.

``build_keyword_model`` puts the input and, for ``raw`` features, the front end before what a builder makes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras

from model_keyword.cnn import CnnConfig, build_cnn
from model_keyword.ds_cnn import DsCnnConfig, build_ds_cnn
from model_keyword.ds_tc_resnet import DsTcResnetConfig, build_ds_tc_resnet
from utils.errors import ConfigError
from utils.keyword_features import KeywordFeatureConfig, feature_frames, feature_values


@dataclass(frozen=True)
class ModelEntry:
    """One model.

    Attributes:
        config: its config class.
        build: ``build(config, x, labels)``: features (B, T, F) → logits (B, labels).
        streams: whether it streams with its default settings.
        samples: whether its features are the samples of each window themselves.
    """

    config: type
    build: Callable[..., Any]
    streams: bool
    samples: bool = False


MODELS: dict[str, ModelEntry] = {
    "cnn": ModelEntry(CnnConfig, build_cnn, streams=True),
    "ds_cnn": ModelEntry(DsCnnConfig, build_ds_cnn, streams=True),
    "ds_tc_resnet": ModelEntry(DsTcResnetConfig, build_ds_tc_resnet, streams=True),
}


def build_keyword_model(
    model_config: Any, features: KeywordFeatureConfig, clip_samples: int, labels: int
) -> keras.Model:
    """Build a model for clips of one length.

    Args:
        model_config: one of the config classes in `MODELS`.
        features: settings of the front end.
        clip_samples: samples a clip at ``features.sample_rate``.
        labels: L, the silence and the unknown words included.

    Returns:
        model of one input, features (B, T, F) float32, or samples (B, clip_samples) float32 in [-1, 1] where
        ``features.kind`` is ``raw`` → logits (B, L) float32.

    Raises:
        ConfigError: the clip holds no frame, a setting doesn't fit it, or the model wants samples.
    """
    entry = MODELS[model_config.name]
    frames = feature_frames(clip_samples, features)
    if frames < 1:
        raise ConfigError(
            f"a clip of {clip_samples} samples is shorter than one window of {features.window_ms:g} ms",
            hint="a longer data.clip_ms, or a smaller features.window_ms",
        )
    if entry.samples and features.kind != "raw":
        raise ConfigError(
            f"model.name {model_config.name} is fed with samples, and features.kind is {features.kind}",
            hint="features.kind=raw",
        )
    if features.kind == "raw":
        raise ConfigError("features.kind raw has no front end yet", hint="features.kind=mfcc")
    inputs = keras.Input((frames, feature_values(features)), name="features")
    return keras.Model(inputs, entry.build(model_config, inputs, labels), name=model_config.name)
