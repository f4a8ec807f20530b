"""The keyword models by name: a config's ``name`` in, its config class, its builder and the whole model out.

``build_keyword_model`` puts the input and, for ``raw`` features, the front end before what a builder makes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras

from model_keyword.layers.front_end import Frames, front_end
from model_keyword.models.att_mh_rnn import AttMhRnnConfig, build_att_mh_rnn
from model_keyword.models.att_rnn import AttRnnConfig, build_att_rnn
from model_keyword.models.bc_resnet import BcResnetConfig, build_bc_resnet
from model_keyword.models.cnn import CnnConfig, build_cnn
from model_keyword.models.crnn import CrnnConfig, build_crnn
from model_keyword.models.dnn import DnnConfig, build_dnn
from model_keyword.models.dnn_raw import DnnRawConfig, build_dnn_raw
from model_keyword.models.ds_cnn import DsCnnConfig, build_ds_cnn
from model_keyword.models.ds_tc_resnet import DsTcResnetConfig, build_ds_tc_resnet
from model_keyword.models.gru import GruConfig, build_gru
from model_keyword.models.inception import InceptionConfig, build_inception
from model_keyword.models.inception_resnet import InceptionResnetConfig, build_inception_resnet
from model_keyword.models.lstm import LstmConfig, build_lstm
from model_keyword.models.mobilenet import MobilenetConfig, build_mobilenet
from model_keyword.models.mobilenet_v2 import MobilenetV2Config, build_mobilenet_v2
from model_keyword.models.resnet import ResnetConfig, build_resnet
from model_keyword.models.svdf import SvdfConfig, build_svdf
from model_keyword.models.svdf_resnet import SvdfResnetConfig, build_svdf_resnet
from model_keyword.models.tc_resnet import TcResnetConfig, build_tc_resnet
from model_keyword.models.xception import XceptionConfig, build_xception
from utils.errors import ConfigError
from utils.features.keyword import KeywordFeatureConfig, feature_frames, feature_values


@dataclass(frozen=True)
class ModelEntry:
    """One model.

    Attributes:
        config: its config class.
        build: ``build(config, x, labels)``: features (B, T, F) → logits (B, labels).
        streams: whether it streams with its default settings.
        samples: whether its features are the samples of each window themselves.
        context: whether it can be given sound before the clip: ``build`` then takes ``clip_share``.
    """

    config: type
    build: Callable[..., Any]
    streams: bool
    samples: bool = False
    context: bool = False


MODELS: dict[str, ModelEntry] = {
    "att_mh_rnn": ModelEntry(AttMhRnnConfig, build_att_mh_rnn, streams=True),
    "att_rnn": ModelEntry(AttRnnConfig, build_att_rnn, streams=False),
    "bc_resnet": ModelEntry(BcResnetConfig, build_bc_resnet, streams=True, context=True),
    "cnn": ModelEntry(CnnConfig, build_cnn, streams=True),
    "crnn": ModelEntry(CrnnConfig, build_crnn, streams=True),
    "dnn": ModelEntry(DnnConfig, build_dnn, streams=True),
    "dnn_raw": ModelEntry(DnnRawConfig, build_dnn_raw, streams=True, samples=True),
    "ds_cnn": ModelEntry(DsCnnConfig, build_ds_cnn, streams=True, context=True),
    "ds_tc_resnet": ModelEntry(DsTcResnetConfig, build_ds_tc_resnet, streams=True, context=True),
    "gru": ModelEntry(GruConfig, build_gru, streams=True),
    "inception": ModelEntry(InceptionConfig, build_inception, streams=True, context=True),
    "inception_resnet": ModelEntry(InceptionResnetConfig, build_inception_resnet, streams=True, context=True),
    "lstm": ModelEntry(LstmConfig, build_lstm, streams=True),
    "mobilenet": ModelEntry(MobilenetConfig, build_mobilenet, streams=True, context=True),
    "mobilenet_v2": ModelEntry(MobilenetV2Config, build_mobilenet_v2, streams=True, context=True),
    "resnet": ModelEntry(ResnetConfig, build_resnet, streams=True, context=True),
    "svdf": ModelEntry(SvdfConfig, build_svdf, streams=True),
    "svdf_resnet": ModelEntry(SvdfResnetConfig, build_svdf_resnet, streams=True, context=True),
    "tc_resnet": ModelEntry(TcResnetConfig, build_tc_resnet, streams=True, context=True),
    "xception": ModelEntry(XceptionConfig, build_xception, streams=True, context=True),
}


def build_keyword_model(
    model_config: Any,
    features: KeywordFeatureConfig,
    clip_samples: int,
    labels: int,
    context_samples: int = 0,
) -> keras.Model:
    """Build a model for clips of one length.

    Args:
        model_config: one of the config classes in `MODELS`.
        features: settings of the front end.
        clip_samples: samples a clip at ``features.sample_rate``.
        labels: L, the silence and the unknown words included.
        context_samples: sound before the clip that the model hears too.

    Returns:
        model of one input, features (B, T, F) float32 of context and clip, or samples (B, context_samples +
        clip_samples) float32 in [-1, 1] where ``features.kind`` is ``raw`` → logits (B, L) float32.

    Raises:
        ConfigError: the clip holds no frame, a setting doesn't fit it, or the model wants samples.
    """
    entry = MODELS[model_config.name]
    samples = context_samples + clip_samples
    frames, clip_frames = (feature_frames(length, features) for length in (samples, clip_samples))
    if clip_frames < 1:
        raise ConfigError(
            f"a clip of {clip_samples} samples is shorter than one window of {features.window_ms:g} ms",
            hint="a longer data.clip_ms, or a smaller features.window_ms",
        )
    if entry.samples and features.kind != "raw":
        raise ConfigError(
            f"model.name {model_config.name} is fed with samples, and features.kind is {features.kind}",
            hint="features.kind=raw",
        )
    if context_samples and not entry.context:
        able = ", ".join(name for name, one in MODELS.items() if one.context)
        what = f"model.name {model_config.name} takes nothing but the clip, and data.context_ms is not 0"
        raise ConfigError(what, hint=f"data.context_ms=0, or one of: {able}")
    if features.kind != "raw":
        inputs = keras.Input((frames, feature_values(features)), name="features")
        x = inputs
    else:
        inputs = keras.Input((samples,), name="samples")
        x = _windows(inputs, features) if entry.samples else front_end(inputs, features)  # (B, T, F)
    more = {"clip_share": clip_frames / frames} if entry.context else {}
    return keras.Model(inputs, entry.build(model_config, x, labels, **more), name=model_config.name)


def _windows(samples, features: KeywordFeatureConfig):
    """Samples (B, S) → the samples of each window (B, T, window)."""
    return Frames(features.window_samples, features.stride_samples, name="frames")(samples)
