"""What an export begins with: a trained model, and all that its bundle has to know and to prove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np

from bundle.check.clips import evenly
from utils.config import with_overrides
from utils.errors import ConfigError
from utils.run_folder.run import RunFolder


@dataclass(frozen=True)
class Clips:
    """Clips of one length, or utterances padded to one, with what is said in them.

    Attributes:
        inputs: (N, T, values) or (N, samples) float32, or (N, L) int32 token ids: what the model takes.
        references: (N,) int, the labels; of speech and text (N, most tokens) int, ended by -1.
        lengths: (N,) int32, the valid positions of each utterance; None: clips of one length.
    """

    inputs: np.ndarray
    references: np.ndarray
    lengths: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def labelled(self) -> bool:
        """Whether it is known what is said in any of them; of noise it isn't."""
        return bool((self.references >= 0).any())

    def spread(self, most: int) -> Clips:
        """At most so many of them, spread evenly: a split is sorted, its first clips are of one speaker."""
        rows = evenly(len(self), most)
        return Clips(
            self.inputs[rows], self.references[rows], None if self.lengths is None else self.lengths[rows]
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """All of them by name, as ``.npz`` files hold them."""
        found = {"inputs": self.inputs, "references": self.references}
        return found if self.lengths is None else {**found, "lengths": self.lengths}


@dataclass(frozen=True)
class ExportSource:
    """A trained model and what belongs to it.

    Attributes:
        kind: ``keyword`` (one answer a clip), ``speech`` (CTC rows) or ``language`` (a row a syllable).
        model: plain Keras model, (N, T, values) or (N, samples) → logits; of whole utterances
            ``{"features", "lengths"}`` or ``{"syllables"}`` → logits (N, rows, classes).
        features: settings of the front end, plain values.
        features_hash: tells them apart, the code's version included.
        labels: of the logits, in their order.
        decoding: how logits become a result, plain values.
        config_hash: of the run's config.yaml.
        frame_seconds: from one frame to the next.
        calibration: clips of the training split, for int8.
        development: clips of the dev split, which the layers that int8 leaves in float are chosen on; none
            where there is no dev split beside the test split: those of the calibration serve.
        tests: clips of the test split, may be none.
        golden: clips that every artefact is compared on.
        row_stride: of a model of whole utterances the input positions a row of logits; 0: a model of clips.
        obstacles: why a model of whole utterances can't stream.
        candidates: of a converter (syllable ids, K) int32, the hanzi ids that each may become, filled with 0.
        tables: more texts that belong in the bundle, by file name.
        accuracy_by_shift: of keyword models: accuracy of whole test clips moved in time, by milliseconds.
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
    development: Clips | None = None
    row_stride: int = 0
    obstacles: tuple[str, ...] = ()
    candidates: np.ndarray | None = None
    tables: Mapping[str, str] = field(default_factory=dict)
    accuracy_by_shift: Mapping[int, float] = field(default_factory=dict)

    @property
    def raw(self) -> bool:
        """Whether the model takes samples."""
        return not self.row_stride and len(self.model.inputs[0].shape) == 2

    @property
    def development_clips(self) -> Clips:
        """The clips that the layers left in float are chosen on: not those that judge an artefact."""
        return (
            self.development if self.development is not None and len(self.development) else self.calibration
        )

    def judging_arrays(self, clips: Clips) -> dict[str, np.ndarray]:
        """Clips, and what judging the answers to them needs, by name."""
        return clips.arrays() | ({} if self.candidates is None else {"candidates": self.candidates})


def data_section(run: RunFolder, overrides: Sequence[str]) -> dict[str, Any]:
    """The section ``data`` of a run's config, with overrides that say where the data are now.

    Raises:
        ConfigError: an override isn't about the data.
    """
    for override in overrides:
        if not override.startswith("data."):
            hint = "an export may be given data.*: where the recordings are now"
            raise ConfigError(f"'{override}' can't be changed after the training", hint=hint)
    return with_overrides({"data": run.config().get("data") or {}}, overrides)["data"]
