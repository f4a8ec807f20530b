"""What an export begins with: a trained model, and all that its bundle has to know and to prove."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from bundle.clips import evenly


@dataclass(frozen=True)
class Clips:
    """Clips of one length with what is said in them.

    Attributes:
        inputs: (N, T, values) or (N, samples) float32: what the model takes.
        references: (N,) int, the labels; of speech (N, most tokens) int, ended by -1.
    """

    inputs: np.ndarray
    references: np.ndarray

    def __len__(self) -> int:
        return len(self.inputs)

    def spread(self, most: int) -> Clips:
        """At most so many of them, spread evenly: a split is sorted, its first clips are of one speaker."""
        rows = evenly(len(self), most)
        return Clips(self.inputs[rows], self.references[rows])


@dataclass(frozen=True)
class ExportSource:
    """A trained model and what belongs to it.

    Attributes:
        kind: ``keyword`` (one answer a clip) or ``speech`` (CTC rows).
        model: plain Keras model, (N, T, values) or (N, samples) → logits.
        features: settings of the front end, plain values.
        features_hash: tells them apart, the code's version included.
        labels: of the logits, in their order.
        decoding: how logits become a result, plain values.
        config_hash: of the run's config.yaml.
        frame_seconds: from one frame to the next.
        calibration: clips of the training split, for int8.
        tests: clips of the test split, may be none.
        golden: clips that every artefact is compared on.
    """

    kind: str
    model: keras.Model
    features: Mapping[str, Any]
    features_hash: str
    labels: tuple[str, ...]
    decoding: Mapping[str, Any]
    config_hash: str
    frame_seconds: float
    calibration: Clips
    tests: Clips
    golden: Clips

    @property
    def raw(self) -> bool:
        """Whether the model takes samples."""
        return len(self.model.inputs[0].shape) == 2
