"""Runs the `compact_streaming` acoustic model in NumPy, chunk by chunk: features in, CTC logits out.

Computes what :mod:`model_speech.models.compact_streaming` builds and Keras trains, without a framework. Each
layer with a window keeps the frames before the chunk, each gate a mean; together these are some 30,000
values for each stream. All streams share the weights.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Self

import numpy as np
from scipy.special import expit

from model_speech.causal_timing import CausalTiming
from model_speech.compact_numpy import (
    NORM_EPSILON,
    STRIDE,
    convolution,
    frame_stack,
    front_blocks,
    join_frames,
    layer_count,
    normalised_kernel,
    residual_output,
    separate_frames,
    strided_convolution,
)
from model_speech.int8_weights import load_packed
from model_speech.running_mean_numpy import frame_shares, running_means
from utils.features.speech import FeatureConfig, feature_bins
from utils.padding import pad_rows
from utils.run_folder.run import RunFolder
from utils.vocabulary import Vocabulary

NAME = "compact_streaming"


@dataclass(frozen=True, eq=False)
class NumpyCompactStreaming(CausalTiming):
    """A trained `compact_streaming` model.

    Attributes:
        scale, offset: (F,) factor and summand that normalise each feature bin.
        fronts: kernel (3, 3, C, D) and offset (D,) of each front convolution.
        front_blocks: for each of them, kernels (3, 3, D, D) and offsets (D,) of its residual blocks.
        stack: frames that are joined after them.
        stacked_blocks: kernels and offsets of the residual blocks on joined frames and pairs of bins.
        projection: (stack · F' · D', width) matrix between them and the blocks.
        front_ahead: look-ahead of the residual blocks over time and frequency, in their frames, 0 or 1.
        blocks: the residual blocks.
        kernel: taps of a block without look-ahead; each further tap stands for one frame of look-ahead.
        output: matrix (width, classes) and bias (classes,).
    """

    scale: np.ndarray
    offset: np.ndarray
    fronts: tuple[tuple[np.ndarray, np.ndarray], ...]
    front_blocks: tuple[Sequence[tuple[np.ndarray, np.ndarray]], ...]
    stack: int
    stacked_blocks: Sequence[tuple[np.ndarray, np.ndarray]]
    projection: np.ndarray
    front_ahead: int
    blocks: tuple["_Block", ...]
    kernel: int
    output: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of_weights(
        cls,
        weights: Mapping[str, np.ndarray],
        features: FeatureConfig,
        vocabulary: Vocabulary,
        look_ahead: int,
        kernel: int,
        front_ahead: bool,
    ) -> Self:
        """Build the model.

        Args:
            weights: arrays by the names of the Keras model's variables.
            features, vocabulary, look_ahead: see :class:`CausalTiming`.
            kernel, front_ahead: as in the class.

        Raises:
            KeyError, ValueError: the weights are not those of such a model.
        """
        fronts, norm = [f"front_{n}" for n in range(1, layer_count(weights, "front") + 1)], "input_norm"
        scale = weights[f"{norm}/gamma"] / np.sqrt(weights[f"{norm}/moving_variance"] + NORM_EPSILON)
        stack = frame_stack(weights, feature_bins(features))
        output = weights["logits/kernel"], weights["logits/bias"]
        if len(output[1]) != len(vocabulary):
            raise ValueError(f"{len(output[1])} classes for {len(vocabulary)} tokens")
        return cls(
            features,
            vocabulary,
            STRIDE ** len(fronts) * stack,
            look_ahead,
            scale=scale,
            offset=weights[f"{norm}/beta"] - weights[f"{norm}/moving_mean"] * scale,
            fronts=tuple(normalised_kernel(weights, name, "conv") for name in fronts),
            front_blocks=tuple(front_blocks(weights, name) for name in fronts),
            stack=stack,
            stacked_blocks=front_blocks(weights, "front_stacked"),
            projection=weights["front/kernel"].reshape(-1, weights["front/kernel"].shape[-1]),
            front_ahead=int(front_ahead),
            blocks=tuple(_Block.of(weights, n) for n in range(1, layer_count(weights, "block") + 1)),
            kernel=kernel,
            output=output,
        )

    def stream(self) -> "NumpyStream":
        """A new stream with these weights."""
        return NumpyStream(self)

    def logits(self, features: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """One batch: B feature arrays (frames, bins) → logits (B, T', classes) and lengths (B,) int32."""
        rows = [self._utterance(frames) for frames in features]
        lengths = np.array([len(row) for row in rows], np.int32)
        return pad_rows(rows, dtype=np.float32, inner=(len(self.vocabulary),)), lengths

    def _utterance(self, frames: np.ndarray) -> np.ndarray:
        """(T, F) → (ceil(T / time_stride), classes)."""
        end = -len(frames) % self.time_stride + self.look_ahead
        padded = np.pad(np.asarray(frames, np.float32), ((0, end), (0, 0)))
        return self.stream().step(padded[None])[0, self.delay :]


class NumpyStream:
    """The state of a stream; a `StreamedModel` of :mod:`streaming.chunks`.

    Args:
        model: the weights.
    """

    def __init__(self, model: NumpyCompactStreaming):
        self._model = model
        self.reset()

    def reset(self) -> None:
        """Start a new stream."""
        self._before: list[np.ndarray] = []  # of each layer with a window, the frames before the chunk
        model, bins, channels = self._model, feature_bins(self._model.features), 1
        for (kernel, _), blocks in zip(model.fronts, model.front_blocks, strict=True):
            self._before.append(np.zeros((1, bins, channels), np.float32))
            bins, channels = -(-bins // STRIDE), kernel.shape[-1]
            self._before += [np.zeros((2, bins, channels), np.float32) for _ in blocks]
        for kernel, _ in model.stacked_blocks:
            self._before.append(np.zeros((2, bins // 2, kernel.shape[-1]), np.float32))
        for block in model.blocks:
            self._before.append(np.zeros((len(block.time) - 1, len(block.mix)), np.float32))
        self._means = [np.zeros(len(block.mix)) for block in model.blocks]  # of its gate, without the prior
        self._frames = 0  # number of frames in the means

    def step(self, chunk: np.ndarray) -> np.ndarray:
        """Process the next chunk (1, n, F), n a multiple of the time stride → (1, n / stride, C) float32."""
        model, states = self._model, count()
        x = (chunk[0] * model.scale + model.offset).astype(np.float32)[:, :, None]  # (n, F, 1)
        for (kernel, offset), blocks in zip(model.fronts, model.front_blocks, strict=True):
            x = strided_convolution(self._with_past(next(states), x), kernel)
            x += offset
            np.maximum(x, 0.0, out=x)
            x = self._residual(x, blocks, states)
        if model.stacked_blocks:
            x = self._residual(join_frames(x, model.stack), model.stacked_blocks, states)
            x = separate_frames(x, model.stack)
        x = x.reshape(-1, len(model.projection)) @ model.projection  # (rows, width)
        shares = frame_shares(self._frames, len(x))
        self._frames += len(x)
        for number, block in enumerate(model.blocks):
            window = self._with_past(next(states), x)
            y = sum(window[tap : tap + len(x)] * kernel for tap, kernel in enumerate(block.time))
            y = np.maximum(y @ block.mix + block.offset, 0.0)
            if block.gate:
                weights, self._means[number] = block.gate(y, self._means[number], *shares)
                y *= weights
            late = window[model.kernel - 1 :][: len(x)]  # delayed by the look-ahead of the convolution
            x = late + y
        matrix, bias = model.output
        return (x @ matrix + bias)[None].astype(np.float32)

    def _residual(
        self, x: np.ndarray, blocks: Sequence[tuple[np.ndarray, np.ndarray]], states: Iterator[int]
    ) -> np.ndarray:
        """Residual blocks over time and frequency: (n, F, C) → the same shape."""
        for kernel, offset in blocks:
            window = self._with_past(next(states), x)
            late = window[2 - self._model.front_ahead :][: len(x)]
            x = residual_output(late, convolution(window, kernel, before=(0, 1), after=(0, 1)), offset)
        return x

    def _with_past(self, layer: int, x: np.ndarray) -> np.ndarray:
        """A layer's input after the frames before it, of which the last are kept for the next chunk."""
        window = np.concatenate([self._before[layer], x])
        self._before[layer] = window[len(x) :]
        return window


def load_numpy_compact_streaming(path: str | Path) -> NumpyCompactStreaming:
    """Open a packed speech run (see :mod:`model_speech.pack`); Keras is not loaded.

    Raises:
        RunError: a file is missing or damaged, or the weights don't match the vocabulary.
    """

    def build(
        run: RunFolder, weights: dict[str, np.ndarray], features: FeatureConfig, vocabulary: Vocabulary
    ) -> NumpyCompactStreaming:
        settings = run.config()["model"]
        look_ahead, kernel = int(settings["look_ahead"]), int(settings["kernel"])
        front_ahead = bool(settings.get("front_ahead", False))
        model = NumpyCompactStreaming.of_weights(
            weights, features, vocabulary, look_ahead, kernel, front_ahead
        )
        model.stream().step(np.zeros((1, model.time_stride, feature_bins(features)), np.float32))
        return model

    return load_packed(path, build)


@dataclass(frozen=True)
class _Gate:
    """Weights the channels of a block by the mean of the frames so far.

    Attributes:
        prior: (width,) mean before the first frame.
        squeeze, excite: matrix and bias of the two layers.
    """

    prior: np.ndarray
    squeeze: tuple[np.ndarray, np.ndarray]
    excite: tuple[np.ndarray, np.ndarray]

    def __call__(
        self, frames: np.ndarray, mean: np.ndarray, shares: np.ndarray, kept: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weights (n, width) of frames (n, width), and the mean (width,) without the prior after them.

        Args:
            frames: the next frames.
            mean: the mean before them, without the prior.
            shares, kept: see :func:`frame_shares`.
        """
        means = running_means(frames - self.prior, mean, shares, kept)
        hidden = (means + self.prior).astype(np.float32) @ self.squeeze[0] + self.squeeze[1]
        return expit(np.maximum(hidden, 0.0) @ self.excite[0] + self.excite[1]), means[-1]


@dataclass(frozen=True)
class _Block:
    """A residual block over time.

    Attributes:
        time: kernel over time (taps, width).
        mix: matrix (width, width).
        offset: (width,).
        gate: None for none.
    """

    time: np.ndarray
    mix: np.ndarray
    offset: np.ndarray
    gate: _Gate | None

    @classmethod
    def of(cls, weights: Mapping[str, np.ndarray], number: int) -> Self:
        """The block with this number."""
        name = f"block_{number}"
        mix, offset = normalised_kernel(weights, name, "mix")
        gate = None
        if f"{name}_gate_mean/prior" in weights:
            parts = (f"{name}_gate_squeeze", f"{name}_gate_excite")
            layers = [(weights[f"{part}/kernel"], weights[f"{part}/bias"]) for part in parts]
            gate = _Gate(weights[f"{name}_gate_mean/prior"], *layers)
        return cls(weights[f"{name}_time/kernel"].reshape(-1, len(mix)), mix, offset, gate)
