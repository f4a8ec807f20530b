"""Runs the `compact` acoustic model in NumPy: features of whole utterances in, CTC logits out.

Computes what :mod:`model_speech.models.compact` builds and Keras trains, without a framework: loading one
takes longer than transcribing a minute of speech. Utterances are computed one by one, without padding.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.special import expit

from model_speech.int8_weights import load_packed
from utils.features.speech import FeatureConfig, feature_bins
from utils.padding import pad_rows
from utils.run_folder.run import RunFolder
from utils.vocabulary import Vocabulary

NAME = "compact"
NORM_EPSILON = 1e-3  # epsilon of MaskedBatchNormalization
STRIDE, _TAPS = 2, 3  # stride and kernel size of the convolutions of the front end, over time and frequency


class NumpyCompact:
    """A trained `compact` model.

    Args:
        weights: arrays by the names of the Keras model's variables.
        features: settings of the features that it was trained on.
        vocabulary: the tokens of its classes, in the order of the logits.

    Raises:
        KeyError, ValueError: the weights are not those of such a model.
    """

    def __init__(self, weights: Mapping[str, np.ndarray], features: FeatureConfig, vocabulary: Vocabulary):
        self.features, self.vocabulary = features, vocabulary
        self._fronts = [
            _Front(weights, f"front_{number}") for number in range(1, layer_count(weights, "front") + 1)
        ]
        self._projection = _matrix(weights["front/kernel"])
        self._stack = frame_stack(weights, feature_bins(features))
        self._stacked_blocks = front_blocks(weights, "front_stacked")
        self.time_stride = STRIDE ** len(self._fronts) * self._stack
        self._blocks = [_Block(weights, f"block_{n}") for n in range(1, layer_count(weights, "block") + 1)]
        self._output, self._bias = _matrix(weights["logits/kernel"]), weights["logits/bias"]
        if self._output.shape[1] != len(vocabulary):
            raise ValueError(f"{self._output.shape[1]} classes for {len(vocabulary)} tokens")

    @property
    def frame_seconds(self) -> float:
        """Seconds between two logit frames."""
        return self.time_stride * self.features.hop_seconds

    def logits(self, features: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """One batch: B feature arrays (frames, bins) → logits (B, T', classes) and lengths (B,) int32."""
        fronts = [self._front(np.asarray(frames, np.float32)) for frames in features]
        lengths = np.array([len(front) for front in fronts], np.int32)
        apart = max((block.after for block in self._blocks), default=0)
        ends = np.cumsum(lengths + apart)
        utterances = [slice(*span) for span in np.stack([ends - lengths, ends], axis=1).tolist()]
        frames = np.concatenate([np.arange(rows.start, rows.stop) for rows in utterances])
        x = np.zeros((ends[-1] + apart, self._projection.shape[1]), np.float32)
        x[frames] = np.concatenate(fronts) @ self._projection
        for block in self._blocks:
            block.add(x, utterances)
        logits = x.take(frames, axis=0) @ self._output
        logits += self._bias
        rows = np.split(logits, np.cumsum(lengths)[:-1])
        return pad_rows(rows, dtype=np.float32, inner=logits.shape[1:]), lengths

    def _front(self, features: np.ndarray) -> np.ndarray:
        """(T, F) → (ceil(T / time_stride), bins · channels)."""
        frames = -(-len(features) // self.time_stride)
        x = np.zeros((frames * self.time_stride, features.shape[1], 1), np.float32)
        x[: len(features), :, 0] = features
        valid = len(features)
        for front in self._fronts:
            valid = -(-valid // STRIDE)
            x = front(x, valid)
        if self._stacked_blocks:
            x = _residual(join_frames(x, self._stack), self._stacked_blocks, frames)
            x = separate_frames(x, self._stack)
        return x.reshape(frames, -1)


class _Front:
    """A front convolution and the residual blocks after it."""

    def __init__(self, weights: Mapping[str, np.ndarray], name: str):
        self._kernel, self._offset = normalised_kernel(weights, name, "conv")
        self._blocks = front_blocks(weights, name)

    def __call__(self, x: np.ndarray, valid: int) -> np.ndarray:
        """(T, F, C) → (T / 2, ceil(F / 2), D), of which ``valid`` frames are no padding."""
        x = strided_convolution(x, self._kernel, after=1)
        x += self._offset
        np.maximum(x, 0.0, out=x)
        x[valid:] = 0.0  # the offset was added to the padding too
        return _residual(x, self._blocks, valid)


def _residual(x: np.ndarray, blocks: Sequence[tuple[np.ndarray, np.ndarray]], valid: int) -> np.ndarray:
    """Residual blocks over time and frequency: (T, F, C) → the same; ``valid`` frames are no padding."""
    for kernel, offset in blocks:
        x = residual_output(x, convolution(x, kernel), offset)
        x[valid:] = 0.0
    return x


class _Block:
    """A residual block.

    Attributes:
        after: frames after its own that an output depends on.
    """

    def __init__(self, weights: Mapping[str, np.ndarray], name: str):
        self._time = np.ascontiguousarray(
            weights[f"{name}_time/kernel"].reshape(-1, weights[f"{name}_mix/kernel"].shape[0])
        )
        self._mix, self._offset = normalised_kernel(weights, name, "mix")
        self._before = (len(self._time) - 1) // 2
        self.after = len(self._time) - 1 - self._before
        self._gate = None
        if f"{name}_gate_squeeze/kernel" in weights:
            layers = (f"{name}_gate_squeeze", f"{name}_gate_excite")
            self._gate = [(weights[f"{layer}/kernel"], weights[f"{layer}/bias"]) for layer in layers]

    def add(self, x: np.ndarray, utterances: Sequence[slice]) -> None:
        """Add the block's output to x (frames, width), in place, for the frames of each utterance.

        Zeros must surround each utterance.
        """
        windows = np.lib.stride_tricks.sliding_window_view(x, len(self._time), axis=0)
        y = np.einsum("twk,kw->tw", windows, self._time) @ self._mix
        y += self._offset
        np.maximum(y, 0.0, out=y)
        for rows in utterances:
            added = y[rows.start - self._before : rows.stop - self._before]
            if self._gate:
                (squeeze, squeeze_bias), (excite, excite_bias) = self._gate
                hidden = np.maximum(added.mean(axis=0) @ squeeze + squeeze_bias, 0.0)
                added *= expit(hidden @ excite + excite_bias)
            x[rows] += added


def load_numpy_compact(path: str | Path) -> NumpyCompact:
    """Open a packed speech run (see :mod:`model_speech.pack`); Keras is not loaded.

    Raises:
        RunError: a file is missing or damaged, or the weights don't match the vocabulary.
    """

    def build(
        run: RunFolder, weights: dict[str, np.ndarray], features: FeatureConfig, vocabulary: Vocabulary
    ) -> NumpyCompact:
        model = NumpyCompact(weights, features, vocabulary)
        model.logits([np.zeros((model.time_stride, feature_bins(features)), np.float32)])
        return model

    return load_packed(path, build)


def layer_count(weights: Mapping[str, np.ndarray], prefix: str) -> int:
    """The highest number in the names of layers ``PREFIX_NUMBER_…``."""
    return max(
        (int(found[1]) for name in weights if (found := re.match(rf"{prefix}_(\d+)_", name))), default=0
    )


def frame_stack(weights: Mapping[str, np.ndarray], bins: int) -> int:
    """Number of frames that the projection joins, for features with this number of bins."""
    channels = 1
    for number in range(1, layer_count(weights, "front") + 1):
        bins, channels = -(-bins // STRIDE), weights[f"front_{number}_conv/kernel"].shape[-1]
    return weights["front/kernel"][..., 0].size // (bins * channels)


def front_blocks(weights: Mapping[str, np.ndarray], name: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Kernel (3, 3, C, C) and offset (C,) of each residual block over time and frequency."""
    names = [f"{name}_block_{number}" for number in range(1, layer_count(weights, f"{name}_block") + 1)]
    return [normalised_kernel(weights, each, "conv") for each in names]


def residual_output(x: np.ndarray, y: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """The output of a residual block, ReLU(x + y + offset), written into y, the convolution of x."""
    y += x
    y += offset
    return np.maximum(y, 0.0, out=y)


def join_frames(x: np.ndarray, stack: int) -> np.ndarray:
    """Join frames and pairs of bins: (stack · T, F, C) → (T, F / 2, stack · 2 · C)."""
    pairs = x.reshape(-1, stack, x.shape[1] // 2, 2 * x.shape[2]).swapaxes(1, 2)
    return pairs.reshape(*pairs.shape[:2], -1)


def separate_frames(x: np.ndarray, stack: int) -> np.ndarray:
    """Undo :func:`join_frames`, one row per output frame: (T, F / 2, stack · 2 · C) → (T, stack · F · C)."""
    return x.reshape(*x.shape[:2], stack, -1).swapaxes(1, 2).reshape(len(x), -1)


def _matrix(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values, np.float32)


def normalised_kernel(
    weights: Mapping[str, np.ndarray], name: str, layer: str
) -> tuple[np.ndarray, np.ndarray]:
    """The kernel of a layer with the scale of its batch normalisation, and the offset (channels,)."""
    gamma, beta, mean, variance = (
        weights[f"{name}_norm/{part}"] for part in ("gamma", "beta", "moving_mean", "moving_variance")
    )
    scale = gamma / np.sqrt(variance + NORM_EPSILON)
    return _matrix(weights[f"{name}_{layer}/kernel"] * scale), beta - mean * scale


def strided_convolution(x: np.ndarray, kernel: np.ndarray, after: int = 0) -> np.ndarray:
    """3 x 3 convolution of stride 2, padded in frequency as "same": (2 T + 1, F, C) → (T, ceil(F / 2), D).

    Args:
        x: frames.
        kernel: (3, 3, C, D).
        after: zero frames to add at the end.
    """
    bins = x.shape[1]
    out_bins = -(-bins // STRIDE)
    missing = max((out_bins - 1) * STRIDE + _TAPS - bins, 0)
    return convolution(x, kernel, STRIDE, (0, missing // 2), (after, missing - missing // 2))


def convolution(
    x: np.ndarray,
    kernel: np.ndarray,
    stride: int = 1,
    before: tuple[int, int] = (1, 1),
    after: tuple[int, int] = (1, 1),
) -> np.ndarray:
    """3 x 3 convolution as one matrix product: (T, F, C) → (T', F', D).

    Args:
        x: frames.
        kernel: (3, 3, C, D).
        stride: in time and in frequency.
        before, after: zeros around x in time and in frequency; by default "same" for stride 1.
    """
    frames, bins, channels = x.shape
    shape = (frames + before[0] + after[0], bins + before[1] + after[1], channels)
    padded = np.zeros(shape, np.float32)  # np.pad takes three times as long
    padded[before[0] : before[0] + frames, before[1] : before[1] + bins] = x
    windows = np.lib.stride_tricks.sliding_window_view(padded, (_TAPS, _TAPS), axis=(0, 1))
    windows = windows[::stride, ::stride]  # (T', F', C, 3, 3)
    columns = windows.transpose(0, 1, 3, 4, 2).reshape(-1, kernel[..., 0].size)  # rows of (3, 3, C)
    return (columns @ kernel.reshape(-1, kernel.shape[-1])).reshape(*windows.shape[:2], -1)
