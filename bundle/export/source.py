"""What an export needs of a run: its trained model, its settings, and clips to calibrate and check."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import keras
import numpy as np

from bundle.check.scoring import evenly
from utils.errors import UserError

Item = TypeVar("Item")


@dataclass(frozen=True)
class Clips:
    """Clips of one length, or utterances padded to one length, with their references.

    Attributes:
        inputs: input of the model: (N, T, values) or (N, samples) float32, or (N, L) int32 token ids.
        references: (N,) int, the labels; for speech and text (N, longest) int tokens, padded with -1.
        lengths: (N,) int32, the valid positions of each utterance; None for clips of one length.
    """

    inputs: np.ndarray
    references: np.ndarray
    lengths: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    def spread(self, count: int) -> Clips:
        """At most ``count`` clips, evenly spaced: the first clips of a split may all be of one speaker."""
        rows = evenly(len(self), count)
        return Clips(**{name: values[rows] for name, values in self.arrays().items()})

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays by name, as in ``.npz`` files."""
        arrays = {"inputs": self.inputs, "references": self.references, "lengths": self.lengths}
        return {name: values for name, values in arrays.items() if values is not None}


def read_splits(
    find: Callable[[], Mapping[str, Sequence[Any]]],
    read: Callable[[Sequence[Any], int], Clips],
    counts: Mapping[str, int],
    empty: Clips,
) -> dict[str, Any]:
    """Read the clips of an export. If the data can't be read, there are none, and a note says so.

    Args:
        find: lists the items of the splits ``train``, ``dev`` and ``test``. Without an item of the test split
            the dev split is the test.
        read: items of a split and a maximum number → that many clips, evenly spaced.
        counts: the maximum number of items of each split.
        empty: no clips.

    Returns:
        ``tests``: clips to measure accuracies on, of the split ``test_split``; ``development``: clips to
        choose int8's float layers on, empty if there is no dev split beside the tests; ``calibration``: clips
        of the training split.
    """

    def take(items: Sequence[Any], count: int) -> Clips:
        return read(items, count) if items else empty

    try:
        splits = find()
        test, dev, train = (splits.get(name) or () for name in ("test", "dev", "train"))
        return {
            "tests": take(test or dev, counts["test"]),
            "test_split": "dev" if dev and not test else "test",
            "development": take(dev if test else (), counts["dev"]),
            "calibration": take(train, counts["train"]),
        }
    except (UserError, OSError) as error:
        print(f"note: no accuracy and no int8, the run's data can't be read: {error}", file=sys.stderr)
        return dict.fromkeys(("tests", "development", "calibration"), empty)


def usable_items(split: str, items: Sequence[Item], fits: Callable[[Item], bool], others: str) -> list[Item]:
    """The items of a split that an export can use; a note gives the number of the others.

    Args:
        split: its name.
        items: all items.
        fits: whether an item can be used.
        others: what the items are that can't: "utterances longer than 8 s".
    """
    usable = [item for item in items if fits(item)]
    if left_out := len(items) - len(usable):
        print(f"note: {split} split: {left_out} of {len(items)} left out, {others}", file=sys.stderr)
    return usable


@dataclass(frozen=True)
class ExportSource:
    """A trained model with everything that its bundle needs.

    Attributes:
        kind: ``keyword`` (one output per clip), ``speech`` (rows of CTC logits) or ``language`` (one row per
            syllable).
        model: plain Keras model, (N, T, values) or (N, samples) → logits; for whole utterances
            ``{"features", "lengths"}`` or ``{"syllables"}`` → logits (N, rows, classes).
        features: feature settings, plain values.
        features_hash: hash of the settings and of the version of the feature code.
        labels: labels of the logits, in order.
        decoding: parameters of decoding, plain values.
        config_hash: hash of the run's config.yaml.
        frame_seconds: seconds between two frames.
        calibration: clips of the training split, for int8.
        development: clips of the dev split, to choose int8's float layers on; if there are none, the
            calibration clips are used.
        tests: clips of ``test_split``, may be empty.
        golden: clips on which every artefact is compared with the model.
        test_split: the split of ``tests``: ``test``, or ``dev`` if no clip of the test split can be used.
        row_stride: input positions per row of logits, for a model of whole utterances; 0 for one of clips.
        obstacles: why a model of whole utterances can't stream.
        blank: class of the CTC blank, for an acoustic model.
        candidates: possible hanzi ids of each syllable, for a converter: (syllables, K) int32, padded with 0.
        tables: further text files of the bundle, by name.
        weights_hash: hash of the weights file of a keyword model; empty for the other kinds.
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
    test_split: str = "test"
    development: Clips | None = None
    row_stride: int = 0
    obstacles: tuple[str, ...] = ()
    blank: int | None = None
    candidates: np.ndarray | None = None
    tables: Mapping[str, str] = field(default_factory=dict)
    weights_hash: str = ""

    @property
    def raw(self) -> bool:
        """Whether the input of the model is samples."""
        return not self.row_stride and len(self.model.inputs[0].shape) == 2

    @property
    def development_clips(self) -> Clips:
        """The clips to choose int8's float layers on: not the test clips."""
        return self.development or self.calibration

    def test_arrays(self, clips: Clips) -> dict[str, np.ndarray]:
        """Clips by name, with the blank or the candidates that measuring errors on them needs."""
        needed = {"blank": self.blank, "candidates": self.candidates}
        return clips.arrays() | {
            name: np.asarray(value) for name, value in needed.items() if value is not None
        }
