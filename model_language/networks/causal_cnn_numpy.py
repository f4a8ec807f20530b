"""Runs the causal gated CNN in NumPy: log-probabilities of the hanzi of many hypotheses at once.

Hypotheses of an utterance have common prefixes, so they are scored as a prefix tree: each distinct prefix is
computed once. All nodes of the tree pass a layer together, and a layer reads the ancestors of a node: what it
computes from an ancestor is computed once for all nodes that have it.
Hypotheses that differ in one hanzi often continue with the same hanzi: nodes with the same last hanzi may
share one computation, that of the better hypothesis (Liu et al. 2014, "Efficient Lattice Rescoring Using
Recurrent Neural Network Language Models"). The softmax is over the hanzi that are frequent in the training
text, and the hanzi that is scored. The file ``hanzi_model.npz`` has a byte for each weight.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np

from model_language.array_files import dequantised, load_part, quantised, save_arrays
from model_language.vocabulary.symbols import PAD_ID
from utils.errors import require
from utils.limits import Count, Fraction, Limited

NAME = "causal_cnn"
KERNEL = 3
"""Positions that a layer reads: its own and two others, ``dilation`` apart."""
_EPSILON = 1e-3  # epsilon of Keras's LayerNormalization
_MATRICES, _INTEGERS = ("vectors", "kernels"), ("dilations", "frequent")
SHARED_HISTORY = 8
"""Hypotheses of an utterance share the computation after this many equal hanzi. With 8, the errors on 179
utterances of unseen speakers are those of complete histories; 57 of 100 nodes remain."""
_TOGETHER = 512  # nodes whose outputs are computed together; limits the memory


@dataclass(frozen=True)
class TextRowsConfig(Limited, section="model.rows"):
    """Training rows: pieces of the text.

    Attributes:
        steps: batches in an epoch; the text is repeated as often as necessary.
        shares: fraction of the rows of each batch that come from each text of ``data.train``; empty: the
            texts are joined, so that each one counts by its size.
        joined: fraction of the line ends that are dropped, so that clauses follow each other.
        negatives: hanzi that a batch draws for the sampled softmax, for each row.
    """

    steps: Count = 1000
    shares: tuple[Fraction, ...] = ()
    joined: Fraction = 0.4
    negatives: Count = 16

    def __post_init__(self):
        super().__post_init__()
        require(
            not self.shares or abs(sum(self.shares) - 1) < 1e-6,
            f"model.rows.shares={list(self.shares)} add up to {sum(self.shares):g}",
            hint="their sum is 1, such as [0.7,0.3]",
        )


@dataclass(frozen=True)
class CausalCnnConfig(Limited, section="model"):
    """Geometry of :func:`model_language.networks.causal_cnn.build_causal_cnn`, and its training rows.

    Attributes:
        width: size of the vectors of the hanzi and of every layer's output.
        dilations: distance between the positions that each layer reads.
        rows: the training rows.
    """

    name: str = NAME
    width: Count = 256
    dilations: tuple[Count, ...] = (1, 1, 2, 4, 8)
    rows: TextRowsConfig = field(default_factory=TextRowsConfig)


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
        frequent: (F,) int, the hanzi of the softmax, without those that are hardly ever probable.
    """

    vectors: np.ndarray
    bias: np.ndarray
    norms: np.ndarray
    kernels: np.ndarray
    biases: np.ndarray
    dilations: np.ndarray
    frequent: np.ndarray

    def save(self, path: str | Path) -> None:
        """Write the weights, matrices as int8, other floats as float16."""
        arrays = {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}
        integers = {name: arrays[name].astype(np.uint16) for name in _INTEGERS}
        save_arrays(path, {**quantised(arrays, _MATRICES), **integers})

    @classmethod
    def load(cls, path: str | Path) -> "CausalCnnWeights":
        """Read what :meth:`save` wrote.

        Raises:
            RunError: the file is missing or damaged.
        """
        names = [field.name for field in fields(cls)]
        return load_part(path, "the language model of hanzi", lambda saved: cls(**dequantised(saved, names)))


class NumpyCausalCnn:
    """Computes the log-probabilities of sequences of hanzi.

    Args:
        weights: weights of any float type.
    """

    def __init__(self, weights: CausalCnnWeights):
        self._weights = CausalCnnWeights(
            **{
                field.name: np.ascontiguousarray(
                    getattr(weights, field.name), int if field.name in _INTEGERS else np.float32
                )
                for field in fields(weights)
            }
        )
        self._is_frequent = np.zeros(len(self._weights.vectors), bool)
        self._is_frequent[self._weights.frequent] = True
        # The bias is one more row, so that no array of all logits is added to another.
        frequent, width = self._weights.frequent, self._weights.vectors.shape[1]
        self._outputs = np.empty((width + 1, len(frequent)), np.float32)
        self._outputs[:width] = self._weights.vectors.take(frequent, axis=0).T
        self._outputs[width] = self._weights.bias.take(frequent)

    def log_probs(self, sequences: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Natural log-probabilities of the hanzi of each sequence and of its end, given those before.

        Args:
            sequences: ids, (L,) int each, without boundaries.

        Returns:
            (L + 1,) float32 each.
        """
        return self.log_probs_of_hypotheses([sequences], shared_history=None)[0]

    def log_probs_of_hypotheses(
        self, utterances: Sequence[Sequence[np.ndarray]], shared_history: int | None = SHARED_HISTORY
    ) -> list[list[np.ndarray]]:
        """As :meth:`log_probs` for the hypotheses of several utterances, the best first.

        Args:
            utterances: the hypotheses of each, (L,) int ids.
            shared_history: hypotheses of an utterance with this many equal last hanzi have the same
                probabilities after these, those of the first one; None: each has its own.

        Returns:
            (L + 1,) float32 for each hypothesis of each utterance.
        """
        parents, tokens, paths = _prefix_tree(utterances, shared_history)
        hidden = self._hidden(parents, tokens)  # (nodes, W), predicts what follows each node
        log_normalisers = self._log_normalisers(hidden)
        return [
            [
                self._following(hidden.take(path, axis=0), log_normalisers.take(path), np.append(ids, PAD_ID))
                for path, ids in zip(*hypotheses, strict=True)
            ]
            for hypotheses in zip(paths, utterances, strict=True)
        ]

    def _log_normalisers(self, hidden: np.ndarray) -> np.ndarray:
        """Logarithm of the softmax's sum over the frequent hanzi: (nodes, W) → (nodes,)."""
        extended = np.column_stack([hidden, np.ones(len(hidden), np.float32)])
        # Fresh memory takes time.
        logits = np.empty((min(len(hidden), _TOGETHER), self._outputs.shape[1]), np.float32)
        sums = np.empty(len(hidden), np.float32)
        for start in range(0, len(hidden), _TOGETHER):
            rows = extended[start : start + _TOGETHER]
            sums[start : start + _TOGETHER] = _log_sum_exp(
                np.matmul(rows, self._outputs, out=logits[: len(rows)])
            )
        return sums

    def _following(self, hidden: np.ndarray, log_normalisers: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Log-probabilities of one hanzi after each of n nodes: (n, W), (n,), (n,) int → (n,)."""
        weights = self._weights
        own = np.einsum("li,li->l", hidden, weights.vectors.take(ids, axis=0)) + weights.bias.take(ids)
        with_own = np.logaddexp(log_normalisers, own)
        return own - np.where(self._is_frequent.take(ids), log_normalisers, with_own)

    def _hidden(self, parents: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """The hidden states after all nodes of a tree: (nodes, W)."""
        weights, width = self._weights, self._weights.vectors.shape[1]
        nodes, before_root = np.arange(len(parents)), np.zeros((1, width), np.float32)
        x = weights.vectors.take(tokens, axis=0) * np.float32(width**0.5)
        for layer, dilation in enumerate(weights.dilations.tolist()):
            # The last row is that of -1.
            y = np.append(_normalised(x, weights.norms[layer]), before_root, axis=0)
            *earlier, own = weights.kernels[layer].reshape(KERNEL, width, -1)
            z, rows = y[:-1] @ own, nodes
            z += weights.biases[layer]
            for kernel in earlier[::-1]:
                rows = _ancestors(parents, rows, dilation)
                distinct, place = np.unique(rows, return_inverse=True)
                z += (y.take(distinct, axis=0) @ kernel).take(place, axis=0)
            x = x + z[:, :width] / (1.0 + np.exp(-z[:, width:]))
        return _normalised(x, weights.norms[-1])


def _prefix_tree(
    utterances: Sequence[Sequence[np.ndarray]], shared_history: int | None
) -> tuple[np.ndarray, np.ndarray, list[list[np.ndarray]]]:
    """The tree of the prefixes of the hypotheses of each utterance; all trees have one root.

    Returns:
        The parent of each node, (nodes,) int, -1 before the root; the last token of each node, (nodes,) int,
        the boundary for the root; of each hypothesis its nodes, (L + 1,) int, from the root on.
    """
    parents, tokens = [-1], [PAD_ID]
    paths: list[list[np.ndarray]] = []
    for hypotheses in utterances:
        nodes: dict[bytes, int] = {}  # by the last tokens
        paths.append([])
        for ids in hypotheses:
            spoken = np.append(PAD_ID, ids).astype(np.int32)
            packed, size = spoken.tobytes(), spoken.itemsize
            path = [0]
            for end, token in enumerate(spoken[1:].tolist(), start=2):
                start = max(0, end - shared_history) if shared_history else 0
                node = nodes.setdefault(packed[start * size : end * size], len(parents))
                if node == len(parents):
                    parents.append(path[-1])
                    tokens.append(token)
                path.append(node)
            paths[-1].append(np.array(path))
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


def _normalised(x: np.ndarray, scale_and_offset: np.ndarray) -> np.ndarray:
    """Layer normalisation (Ba et al. 2016) of (…, W)."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = np.einsum("...i,...i->...", centred, centred)[..., None] / x.shape[-1]
    centred *= scale_and_offset[0] / np.sqrt(variance + _EPSILON)
    return centred + scale_and_offset[1]
