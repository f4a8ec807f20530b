"""Table of the acoustic models: for each ``model.name`` of a config, its config class and build function."""

from collections.abc import Callable
from dataclasses import dataclass

import keras

from model_speech.models.compact import CompactConfig, build_compact
from model_speech.models.compact_streaming import (
    CompactStreamingConfig,
    build_compact_streaming,
    causal_network,
)
from model_speech.models.conformer import ConformerConfig, build_conformer
from model_speech.models.dfcnn import DfcnnConfig, build_dfcnn
from model_speech.models.dfsmn import DfsmnConfig, build_dfsmn
from model_speech.models.gru_ctc import GruCtcConfig, build_gru_ctc
from model_speech.models.whisper import WhisperConfig, build_whisper


@dataclass(frozen=True)
class ModelEntry:
    """An acoustic model.

    Attributes:
        config: config class of the model.
        build: ``build(config, feature_bins, classes)``; features have F bins, and the blank is one of the C
            classes. Model of ``{"features": (B, T, F) float32, "lengths": (B,) int32}`` → logits (B, T', C);
            padding has no influence on valid outputs.
        causal: ``causal(model, config) -> keras.Model``, the causal network for streams, without lengths and
            masks; None for a model that can't stream.
    """

    config: type
    build: Callable[..., keras.Model]
    causal: Callable[..., keras.Model] | None = None


MODELS: dict[str, ModelEntry] = {
    "compact": ModelEntry(CompactConfig, build_compact),
    "compact_streaming": ModelEntry(CompactStreamingConfig, build_compact_streaming, causal_network),
    "conformer": ModelEntry(ConformerConfig, build_conformer),
    "dfcnn": ModelEntry(DfcnnConfig, build_dfcnn),
    "dfsmn": ModelEntry(DfsmnConfig, build_dfsmn),
    "gru_ctc": ModelEntry(GruCtcConfig, build_gru_ctc),
    "whisper": ModelEntry(WhisperConfig, build_whisper),
}
