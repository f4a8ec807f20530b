"""Runs the gated CNN in NumPy: log-probabilities of each syllable's candidate hanzi, given the sentence.

Computes what :mod:`model_language.networks.gated_cnn` builds and Keras trains, without a framework: starting
one takes longer than converting a thousand sentences. The file ``network.npz`` has a byte for each weight:
matrices are integers from -127 to 127 with one scale for each row; other values have two bytes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from model_language.array_files import load_part, save_arrays
from model_language.vocabulary.symbols import PAD_ID

KERNEL = 3  # positions that a layer reads: its own and one on each side, ``dilation`` away
_EPSILON = 1e-3  # epsilon of Keras's LayerNormalization
_INTEGER_TYPES = {"dilations": np.uint16, "candidates": np.uint16, "rated": np.uint16}
_MATRICES = ("embeddings", "kernels", "hanzi")
_SCALES = "_scales"
_HIGHEST = 127


@dataclass(frozen=True)
class GatedCnnWeights:
    """The weights of a trained network and its candidates.

    Attributes:
        embeddings: (tokens, W), vectors of the syllables with and without tones; row 0 is padding.
        norms: (layers + 1, 2, W), scales and offsets; the last ones belong to the output.
        kernels: (layers, KERNEL · W, 2 · W).
        biases: (layers, 2 · W).
        dilations: (layers,) int.
        hanzi: (hanzi, W), output vectors.
        candidates: (tokens, K) int, hanzi ids, 0 in empty columns.
        priors: (tokens, K), added to the logit of a candidate; -inf in empty columns.
        rated: number of columns that the network rates; the others, rarer hanzi, have only their prior.
    """

    embeddings: np.ndarray
    norms: np.ndarray
    kernels: np.ndarray
    biases: np.ndarray
    dilations: np.ndarray
    hanzi: np.ndarray
    candidates: np.ndarray
    priors: np.ndarray
    rated: int


class NumpyGatedCnn:
    """Scores the candidate hanzi of each syllable.

    Args:
        weights: weights of any float type.
    """

    def __init__(self, weights: GatedCnnWeights):
        as_float = {
            name: np.ascontiguousarray(getattr(weights, name), np.float32)
            for name in ("embeddings", "norms", "kernels", "biases", "hanzi", "priors")
        }
        self._weights = GatedCnnWeights(
            **as_float,
            dilations=weights.dilations,
            candidates=np.ascontiguousarray(weights.candidates, np.int32),
            rated=weights.rated,
        )
        self._common = np.ascontiguousarray(self._weights.priors[:, : weights.rated])

    @cached_property
    def _first(self) -> np.ndarray:
        """The first layer's products of each syllable, as the one before, the middle one and the one after.

        (KERNEL, tokens, 2 · W), made on first use: the joint search does without the network.
        """
        weights = self._weights
        kernel = weights.kernels[0].reshape(KERNEL, weights.embeddings.shape[1], -1)
        products = normalised(weights.embeddings, weights.norms[0]) @ kernel
        products[:, PAD_ID] = 0.0
        return products

    @property
    def candidates(self) -> np.ndarray:
        """(tokens, K) int32, hanzi ids, 0 in empty columns."""
        return self._weights.candidates

    @property
    def rated_candidates(self) -> np.ndarray:
        """(tokens, rated) int32, the candidates that the network rates."""
        return self._weights.candidates[:, : self._weights.rated]

    def log_probs(self, syllables: np.ndarray, rare: bool = True) -> np.ndarray:
        """log P(hanzi | all syllables) of each candidate.

        Args:
            syllables: (B, L) int, filled with 0.
            rare: include the candidates that the network does not rate; otherwise K is ``rated``.

        Returns:
            (B, L, K) float32, aligned with ``candidates[syllables]``; -inf in empty columns and at padding.
        """
        weights, flat = self._weights, syllables.ravel()
        logits = (weights.priors if rare else self._common).take(flat, axis=0)  # (B · L, K)
        # Positions with the same syllable share their candidates: one product for each distinct syllable.
        by_token = np.argsort(flat, kind="stable")
        tokens, starts = np.unique(flat.take(by_token), return_index=True)
        hidden = self._hidden(syllables).reshape(len(flat), -1).take(by_token, axis=0)  # (B · L, W)
        rated = np.zeros((len(flat), weights.rated), np.float32)
        for token, start, end in zip(
            tokens.tolist(), starts.tolist(), [*starts[1:].tolist(), len(flat)], strict=True
        ):
            if token != PAD_ID:
                vectors = weights.hanzi.take(self.rated_candidates[token], axis=0)
                np.matmul(hidden[start:end], vectors.T, out=rated[start:end])
        logits[by_token, : weights.rated] += rated
        with np.errstate(invalid="ignore"):
            logits -= logits.max(axis=1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
        logits[flat == PAD_ID] = -np.inf  # otherwise NaN, from rows of -inf
        return logits.reshape(*syllables.shape, -1)

    def _hidden(self, syllables: np.ndarray) -> np.ndarray:
        """(B, L) → (B, L, W)."""
        weights = self._weights
        x = weights.embeddings.take(syllables, axis=0)
        padding, width = syllables == PAD_ID, x.shape[-1]
        x[padding] = 0.0
        for layer, dilation in enumerate(weights.dilations.tolist()):
            if layer:
                y = normalised(x, weights.norms[layer])
                y[padding] = 0.0
                y = _neighbours(y, dilation).reshape(-1, KERNEL * width) @ weights.kernels[layer]
            else:
                y = self._first_products(syllables, dilation)
            y += weights.biases[layer]  # (B · L, 2 · W)
            gate = np.exp(-y[:, width:])
            gate += 1.0
            x += (y[:, :width] / gate).reshape(x.shape)
            x[padding] = 0.0
        return normalised(x, weights.norms[-1])

    def _first_products(self, syllables: np.ndarray, dilation: int) -> np.ndarray:
        """(B, L) → what the first layer's kernel makes of the normalised embeddings, (B · L, 2 · W)."""
        before, middle, after = _neighbours(syllables[:, :, None], dilation).reshape(-1, KERNEL).T
        result = self._first[1].take(middle, axis=0)
        result += self._first[0].take(before, axis=0)
        result += self._first[2].take(after, axis=0)
        return result


def normalised(x: np.ndarray, scale_and_offset: np.ndarray) -> np.ndarray:
    """Layer normalisation (Ba et al. 2016) of (…, W)."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = np.einsum("...i,...i->...", centred, centred)[..., None] / x.shape[-1]
    centred *= scale_and_offset[0] / np.sqrt(variance + _EPSILON)
    return centred + scale_and_offset[1]


def _neighbours(x: np.ndarray, dilation: int) -> np.ndarray:
    """(B, L, W) → (B, L, KERNEL · W): the position before, itself, the one after; zeros beyond the ends."""
    batch, length, width = x.shape
    result = np.zeros((batch, length, KERNEL * width), x.dtype)
    shift = min(dilation, length)
    result[:, shift:, :width] = x[:, : length - shift]
    result[:, :, width : 2 * width] = x
    result[:, : length - shift, 2 * width :] = x[:, shift:]
    return result


def save_weights(path: str | Path, weights: GatedCnnWeights) -> None:
    """Write the weights, matrices as int8, other floats as float16."""
    arrays = {field.name: np.asarray(getattr(weights, field.name)) for field in fields(weights)}
    integers = {name: arrays[name].astype(kind) for name, kind in _INTEGER_TYPES.items()}
    save_arrays(path, {**quantised(arrays, _MATRICES), **integers})


def load_weights(path: str | Path) -> GatedCnnWeights:
    """Read what :func:`save_weights` wrote.

    Raises:
        RunError: the file is missing or damaged.
    """
    hint = "copy the folder again, or train it again if an earlier version made it"
    return load_part(path, "the network", _from_arrays, hint)


def _from_arrays(saved: Mapping[str, np.ndarray]) -> GatedCnnWeights:
    arrays: dict[str, Any] = dequantised(saved, [field.name for field in fields(GatedCnnWeights)])
    return GatedCnnWeights(**arrays | {"rated": int(arrays["rated"])})


def quantised(arrays: Mapping[str, np.ndarray], matrices: Sequence[str]) -> dict[str, np.ndarray]:
    """Arrays for a file: the matrices as int8 with a scale for each row, all others as float16."""
    saved = {name: values.astype(np.float16) for name, values in arrays.items() if name not in matrices}
    for name in matrices:
        saved[name], saved[name + _SCALES] = _quantise(arrays[name])
    return saved


def dequantised(saved: Mapping[str, np.ndarray], names: Sequence[str]) -> dict[str, np.ndarray]:
    """The arrays with these names of a file made by :func:`quantised`; the matrices are float32.

    Raises:
        KeyError: an array is missing.
    """
    return {
        name: saved[name] * np.float32(saved[name + _SCALES]) if name + _SCALES in saved else saved[name]
        for name in names
    }


def _quantise(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows (…, n) → int8 (…, n) and scales (…, 1) float16, whose product approximates the rows."""
    highest = np.abs(matrix).max(axis=-1, keepdims=True)
    # Rounded up: with a scale that float16 rounds down, the highest value would exceed 127 steps.
    scales = np.nextafter((highest / _HIGHEST).astype(np.float16), np.float16(np.inf))
    return np.round(matrix / scales.astype(np.float32)).astype(np.int8), scales
