"""The acoustic models by name: a config's ``name`` in, its config class and its builder out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import keras

from model_speech.compact import CompactConfig, build_compact
from model_speech.dfcnn import DfcnnConfig, build_dfcnn


@dataclass(frozen=True)
class ModelEntry:
    """A model's config class and its builder, ``build(config, feature_bins, classes) -> keras.Model``."""

    config: type
    build: Callable[..., keras.Model]


MODELS: dict[str, ModelEntry] = {
    "compact": ModelEntry(CompactConfig, build_compact),
    "dfcnn": ModelEntry(DfcnnConfig, build_dfcnn),
}
