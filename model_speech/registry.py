"""The acoustic models by name: a config's ``name`` in, its config class and its builder out."""

from __future__ import annotations

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


@dataclass(frozen=True)
class ModelEntry:
    """A model's config class and its builder, ``build(config, feature_bins, classes) -> keras.Model``.

    Of a model that streams also what makes the plain causal network of it, ``causal(model, config)``.
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
}
