"""A trained acoustic model, features in, CTC logits out: its interface; loads it with or without Keras."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from model_speech.onnx_acoustic import load_onnx_acoustic
from model_speech.packed_run import is_packed
from utils.backend.quiet import silence_tensorflow
from utils.features.settings import FeatureConfig
from utils.run_folder.run import RunFolder
from utils.vocabulary import Vocabulary


class AcousticLogits(Protocol):
    """An acoustic model, with Keras (:class:`~model_speech.acoustic_model.AcousticModel`) or without."""

    @property
    def features(self) -> FeatureConfig:
        """Settings of the features."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens of the logits."""

    @property
    def frame_seconds(self) -> float:
        """Seconds between two logit frames."""

    def logits(self, features: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """B feature arrays (frames, bins) → logits (B, T', classes) and lengths (B,) int32."""


def load_acoustic_logits(run: Path) -> AcousticLogits:
    """Load the acoustic model of a speech run; Keras is loaded only for one that was not packed.

    Raises:
        RunError: a file is missing or damaged.
    """
    if is_packed(RunFolder(run)):
        return load_onnx_acoustic(run)
    silence_tensorflow()
    from model_speech.acoustic_model import load_acoustic_model  # here: it loads Keras

    return load_acoustic_model(run)
