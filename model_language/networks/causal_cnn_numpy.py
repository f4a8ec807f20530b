"""Runs the causal gated CNN in NumPy: log-probabilities of the hanzi of many hypotheses at once.

Hypotheses of an utterance begin alike, so they are rated as a tree: each different beginning is computed
once. All nodes of the tree pass a layer together, and a layer reads the ancestors of a node. The file
``hanzi_model.npz`` has a byte for each weight.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from model_language.files import load_part, save_arrays
from model_language.networks.gated_cnn_file import dequantised, quantised
from model_language.networks.gated_cnn_numpy import KERNEL, normalised
from model_language.vocabulary.symbols import PAD_ID

WEIGHTS_FILE = "hanzi_model.npz"
_MATRICES = ("vectors", "kernels")
_TOGETHER = 512  # nodes whose outputs are computed together; limits the memory


@dataclass(frozen=True)
class CausalCnnWeights:
    """The weights of a trained network.

    Attributes:
        vectors: (hanzi, W), of each hanzi as an input and as an output; id 0 is the boundary of sentences.
        bias: (hanzi,), of each hanzi as an output.
        norms: (layers + 1, 2, W), scales and offsets; the last ones belong to the output.
        kernels: (layers, KERNEL · W, 2 · W).
        biases: (layers, 2 · W).
        dilations: (layers,) int.
    """

    vectors: np.ndarray
    bias: np.ndarray
    norms: np.ndarray
    kernels: np.ndarray
    biases: np.ndarray
    dilations: np.ndarray

    def save(self, path: str | Path) -> None:
        """Write the weights, matrices as int8, other floats as float16."""
        arrays = {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}
        dilations = arrays["dilations"].astype(np.uint16)
        save_arrays(path, {**quantised(arrays, _MATRICES), "dilations": dilations})

    @classmethod
    def load(cls, path: str | Path) -> "CausalCnnWeights":
        """Read what :meth:`save` wrote.

        Raises:
            RunError: the file is missing or damaged, or its arrays do not fit together.
        """
        return load_part(path, "the language model of hanzi", _from_arrays)


class NumpyCausalCnn:
    """Rates sequences of hanzi.

    Args:
        weights: weights of any float type.
    """

    def __init__(self, weights: CausalCnnWeights):
        self._weights = CausalCnnWeights(
            **{
                field.name: np.ascontiguousarray(getattr(weights, field.name), np.float32)
                for field in fields(weights)
                if field.name != "dilations"
            },
            dilations=np.asarray(weights.dilations, int),
        )

    @property
    def size(self) -> int:
        """Number of hanzi, with the boundary and the unknown hanzi."""
        return len(self._weights.vectors)

    def log_probs(self, sequences: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Natural log-probabilities of the hanzi of each sequence and of its end, given those before.

        Args:
            sequences: ids, (L,) int each, without boundaries.

        Returns:
            (L + 1,) float32 each.
        """
        parents, tokens, paths = _tree(sequences)
        hidden = self._hidden(parents, tokens)  # (nodes, W), of what follows each node
        weights, result = self._weights, []
        totals = np.concatenate(
            [
                _log_sum_exp(hidden[start : start + _TOGETHER] @ weights.vectors.T + weights.bias)
                for start in range(0, len(hidden), _TOGETHER)
            ]
        )
        for path, ids in zip(paths, sequences, strict=True):
            following = np.append(ids, PAD_ID)
            own = np.einsum("li,li->l", hidden.take(path, axis=0), weights.vectors.take(following, axis=0))
            result.append(own + weights.bias.take(following) - totals.take(path))
        return result

    def _hidden(self, parents: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """What is known after each node of a tree, (nodes, W)."""
        weights, width = self._weights, self._weights.vectors.shape[1]
        x = weights.vectors.take(tokens, axis=0) * np.float32(width**0.5)
        for layer, dilation in enumerate(weights.dilations.tolist()):
            # The last row stands for what is before the root.
            y = np.append(normalised(x, weights.norms[layer]), np.zeros((1, width), np.float32), axis=0)
            middle = _ancestors(parents, np.arange(len(x)), dilation)
            window = [y.take(_ancestors(parents, middle, dilation), axis=0), y.take(middle, axis=0), y[:-1]]
            z = np.concatenate(window, axis=1) @ weights.kernels[layer] + weights.biases[layer]
            x = x + z[:, :width] / (1.0 + np.exp(-z[:, width:]))
        return normalised(x, weights.norms[-1])


def _tree(sequences: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """The tree of the beginnings of sequences.

    Returns:
        The parent of each node, (nodes,) int, -1 before the root; the last token of each node, (nodes,) int,
        the boundary for the root; the nodes of each sequence, (L + 1,) int, from the root on.
    """
    nodes: dict[tuple[int, int], int] = {}
    parents, tokens, paths = [-1], [PAD_ID], []
    for ids in sequences:
        path = [0]
        for token in ids.tolist():
            node = nodes.setdefault((path[-1], token), len(parents))
            if node == len(parents):
                parents.append(path[-1])
                tokens.append(token)
            path.append(node)
        paths.append(np.array(path))
    return np.array(parents), np.array(tokens), paths


def _ancestors(parents: np.ndarray, nodes: np.ndarray, distance: int) -> np.ndarray:
    """The nodes ``distance`` steps nearer to the root, -1 for none."""
    with_none = np.append(parents, -1)  # of -1 it is -1
    for _ in range(distance):
        nodes = with_none.take(nodes, mode="wrap")
    return nodes


def _log_sum_exp(logits: np.ndarray) -> np.ndarray:
    """(n, C) → (n,); changes ``logits``."""
    highest = logits.max(axis=1)
    logits -= highest[:, None]
    return highest + np.log(np.exp(logits, out=logits).sum(axis=1))


def _from_arrays(saved: Mapping[str, np.ndarray]) -> CausalCnnWeights:
    weights = CausalCnnWeights(**dequantised(saved, [field.name for field in fields(CausalCnnWeights)]))
    layers, width = len(weights.dilations), weights.vectors.shape[-1]
    shapes = {
        "vectors": (len(weights.bias), width),
        "norms": (layers + 1, 2, width),
        "kernels": (layers, KERNEL * width, 2 * width),
        "biases": (layers, 2 * width),
    }
    if any(getattr(weights, name).shape != shape for name, shape in shapes.items()):
        raise ValueError("its arrays do not fit together")
    return weights
