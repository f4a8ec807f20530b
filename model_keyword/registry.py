"""Table of the keyword models by name, with their config classes and builders; builds whole models.

``build_keyword_model`` adds the input and, for ``raw`` features, the front end (layers that compute the
features from samples) to a network.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras

from model_keyword.layers.front_end import front_end
from model_keyword.models.att_rnn import AttMhRnnConfig, AttRnnConfig, build_att_rnn
from model_keyword.models.bc_resnet import BcResnetConfig, build_bc_resnet
from model_keyword.models.cnn import CnnConfig, build_cnn
from model_keyword.models.crnn import CrnnConfig, build_crnn
from model_keyword.models.dnn import DnnConfig, DnnRawConfig, build_dnn
from model_keyword.models.ds_cnn import DsCnnConfig, build_ds_cnn
from model_keyword.models.ds_tc_resnet import DsTcResnetConfig, build_ds_tc_resnet
from model_keyword.models.gru_lstm import GruConfig, LstmConfig, build_recurrent
from model_keyword.models.inception import InceptionConfig, build_inception
from model_keyword.models.inception_resnet import InceptionResnetConfig, build_inception_resnet
from model_keyword.models.mobilenet import MobilenetConfig, build_mobilenet
from model_keyword.models.mobilenet_v2 import MobilenetV2Config, build_mobilenet_v2
from model_keyword.models.resnet import ResnetConfig, build_resnet
from model_keyword.models.svdf import SvdfConfig, build_svdf
from model_keyword.models.svdf_resnet import SvdfResnetConfig, build_svdf_resnet
from model_keyword.models.tc_resnet import TcResnetConfig, build_tc_resnet
from model_keyword.models.xception import XceptionConfig, build_xception
from utils.backend.frame_spectra import Frames
from utils.errors import ConfigError, require
from utils.features.keyword import KeywordFeatureConfig, feature_frames, feature_values


@dataclass(frozen=True)
class ModelEntry:
    """One model.

    Attributes:
        config: config class of the model.
        build: ``build(config, x, labels)`` adds the network: features (B, T, F) → logits (B, labels).
        samples: whether the network takes the samples of each window instead of features.
        context: whether sound before the clip can be added: ``build`` then takes ``clip_fraction``, the
            fraction of the frames that belong to the clip; see `model_keyword.layers.time_layers.clip_mean`.
    """

    config: type
    build: Callable[..., Any]
    samples: bool = False
    context: bool = False


MODELS: dict[str, ModelEntry] = {
    "att_mh_rnn": ModelEntry(AttMhRnnConfig, build_att_rnn),
    "att_rnn": ModelEntry(AttRnnConfig, build_att_rnn),
    "bc_resnet": ModelEntry(BcResnetConfig, build_bc_resnet, context=True),
    "cnn": ModelEntry(CnnConfig, build_cnn),
    "crnn": ModelEntry(CrnnConfig, build_crnn),
    "dnn": ModelEntry(DnnConfig, build_dnn),
    "dnn_raw": ModelEntry(DnnRawConfig, build_dnn, samples=True),
    "ds_cnn": ModelEntry(DsCnnConfig, build_ds_cnn, context=True),
    "ds_tc_resnet": ModelEntry(DsTcResnetConfig, build_ds_tc_resnet, context=True),
    "gru": ModelEntry(GruConfig, build_recurrent),
    "inception": ModelEntry(InceptionConfig, build_inception, context=True),
    "inception_resnet": ModelEntry(InceptionResnetConfig, build_inception_resnet, context=True),
    "lstm": ModelEntry(LstmConfig, build_recurrent),
    "mobilenet": ModelEntry(MobilenetConfig, build_mobilenet, context=True),
    "mobilenet_v2": ModelEntry(MobilenetV2Config, build_mobilenet_v2, context=True),
    "resnet": ModelEntry(ResnetConfig, build_resnet, context=True),
    "svdf": ModelEntry(SvdfConfig, build_svdf),
    "svdf_resnet": ModelEntry(SvdfResnetConfig, build_svdf_resnet, context=True),
    "tc_resnet": ModelEntry(TcResnetConfig, build_tc_resnet, context=True),
    "xception": ModelEntry(XceptionConfig, build_xception, context=True),
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
        clip_samples: length of a clip, in samples at ``features.sample_rate``.
        labels: L, including those of silence and unknown words.
        context_samples: length of the sound before the clip that is part of the input.

    Returns:
        model with one input: features (B, T, F) float32 of context and clip, or, where ``features.kind`` is
        ``raw``, samples (B, context_samples + clip_samples) float32 in [-1, 1]; logits (B, L) float32 out.

    Raises:
        ConfigError: the clip is shorter than a frame, a setting does not fit, or the model needs samples.
    """
    entry = MODELS[model_config.name]
    samples = context_samples + clip_samples
    frames, clip_frames = (feature_frames(length, features) for length in (samples, clip_samples))
    require(
        clip_frames >= 1,
        f"a clip of {clip_samples} samples is shorter than one window of {features.window_ms:g} ms",
        hint="a longer data.clip_ms, or a smaller features.window_ms",
    )
    if entry.samples and features.kind != "raw":
        raise ConfigError(
            f"model.name {model_config.name} takes samples, but features.kind is {features.kind}",
            hint="features.kind=raw",
        )
    if context_samples and not entry.context:
        able = ", ".join(name for name, entry in MODELS.items() if entry.context)
        raise ConfigError(
            f"model.name {model_config.name} takes the clip only, but data.context_ms is not 0",
            hint=f"data.context_ms=0, or one of: {able}",
        )
    if features.kind != "raw":
        inputs = x = keras.Input((frames, feature_values(features)), name="features")
    else:
        inputs = keras.Input((samples,), name="samples")
        windows = Frames(features.window_samples, features.stride_samples, name="frames")
        x = windows(inputs) if entry.samples else front_end(inputs, features)  # (B, T, F)
    more = {"clip_fraction": clip_frames / frames} if entry.context else {}
    return keras.Model(inputs, entry.build(model_config, x, labels, **more), name=model_config.name)
