"""Gated CNN for pinyin to hanzi, in Keras: logits of the candidate hanzi of each syllable in a sentence.

Each layer reads a position and one on each side, ``dilation`` away (Dauphin et al. 2017, "Language Modeling
with Gated Convolutional Networks", with the growing dilations of van den Oord et al. 2016, WaveNet). It
scores only the candidates of each syllable (:mod:`model_language.networks.candidates`), not all hanzi.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import keras
import numpy as np
from keras import layers, ops

from model_language.networks.candidates import CandidateTables
from model_language.networks.causal_cnn_numpy import KERNEL
from model_language.networks.loss import IMPOSSIBLE
from model_language.vocabulary.symbols import PAD_ID
from utils.errors import require
from utils.limits import Count, Fraction, Limited, at_least

NAME = "gated_cnn"

_serializable = keras.saving.register_keras_serializable(package="model_language")


@dataclass(frozen=True)
class RowsConfig(Limited, section="model.rows"):
    """Training rows: pieces of the text, some of them corrupted.

    A row is either unchanged, toneless, mixed or confused. All values except ``steps`` are fractions.

    Attributes:
        steps: batches in an epoch; the text is repeated as often as necessary.
        joined: fraction of the line ends that are dropped, so that clauses follow each other.
        particles: fraction of the particles 地 and 得 that get the full readings di4 and de2.
        spoken: among syllables whose spoken form differs from the citation reading, the fraction that get the
            spoken form.
        toneless: fraction of the rows without tones.
        mixed: fraction of the rows in which some tones are missing and a few syllables are confused.
        confused: fraction of the rows in which more syllables are replaced by one that an acoustic model
            confuses them with.
    """

    steps: Count = 1000
    joined: Fraction = 0.5
    particles: Fraction = 0.4
    spoken: Fraction = 0.0
    toneless: Fraction = 0.25
    mixed: Fraction = 0.1
    confused: Fraction = 0.15

    def __post_init__(self):
        super().__post_init__()
        require(
            self.toneless + self.mixed + self.confused <= 1,
            f"model.rows: {self.toneless} + {self.mixed} + {self.confused} is more than 1",
            hint="toneless, mixed and confused are fractions of the rows that exclude each other",
        )


@dataclass(frozen=True)
class GatedCnnConfig(Limited, section="model"):
    """Geometry of :func:`build_gated_cnn` and its training rows.

    Attributes:
        width: size of the embeddings and of every layer's output.
        dilations: distance of the neighbours in each layer.
        choices: candidates of each syllable.
        rows: the training rows.
    """

    name: str = NAME
    width: Count = 128
    dilations: tuple[Count, ...] = (1, 2, 4, 8)
    choices: Annotated[int, at_least(2)] = 32
    rows: RowsConfig = field(default_factory=RowsConfig)


def build_gated_cnn(config: GatedCnnConfig, tables: CandidateTables, hanzi_size: int) -> keras.Model:
    """Build the model.

    Args:
        config: geometry.
        tables: the candidates, ``config.choices`` for each token.
        hanzi_size: tokens of the output vocabulary.

    Returns:
        Model of ``{"syllables": (B, L) int32}`` → logits (B, L, K) float32, aligned with
        ``tables.candidates``, about -1e9 in empty columns. Padding (id 0) has no influence on the other
        positions.
    """
    syllables = keras.Input((None,), dtype="int32", name="syllables")
    present = ops.expand_dims(ops.not_equal(syllables, PAD_ID), -1)  # (B, L, 1)
    x = SyllableEmbedding(tables.bases, config.width, name="embedding")(syllables)  # (B, L, width)
    for number, dilation in enumerate(config.dilations, start=1):
        x = GatedNeighbours(dilation, name=f"neighbours_{number}")(x, present)
    x = layers.LayerNormalization(name="final_norm")(x)
    logits = CandidateLogits(tables.candidates, tables.priors, hanzi_size, dtype="float32", name="logits")
    return keras.Model({"syllables": syllables}, logits(x, syllables), name=config.name)


@_serializable
class SyllableEmbedding(layers.Layer):
    """The vector of a token plus the vector of its toneless syllable.

    Args:
        bases: (tokens,) int, index of the toneless syllable of each token.
        width: size of the vectors.

    Call: syllables (B, L) int32 → (B, L, width); padding becomes 0.
    """

    def __init__(self, bases: np.ndarray | Sequence[int], width: int, **kwargs):
        super().__init__(**kwargs)
        self.bases, self.width = np.asarray(bases, np.int32), width

    def build(self, shape):
        """Create the vectors."""
        sizes = {"token": len(self.bases), "base": int(self.bases.max()) + 1}
        for name, size in sizes.items():
            weight = self.add_weight(shape=(size, self.width), initializer="uniform", name=name)
            setattr(self, name, weight)

    def call(self, syllables):
        """See the class."""
        bases = ops.take(self.bases, syllables, axis=0)
        x = ops.take(self.token, syllables, axis=0) + ops.take(self.base, bases, axis=0)
        return x * ops.cast(ops.expand_dims(ops.not_equal(syllables, PAD_ID), -1), x.dtype)

    def compute_output_shape(self, shape):
        """(B, L) → (B, L, width)."""
        return (*shape, self.width)

    def multiply_accumulates(self, length: int) -> int:
        """None: the vectors are looked up."""
        return 0

    def get_config(self):
        """The constructor's arguments."""
        return {**super().get_config(), "bases": self.bases.tolist(), "width": self.width}


@_serializable
class GatedNeighbours(layers.Layer):
    """x + value · sigmoid(gate), both linear in the normalised position and two others.

    Args:
        dilation: distance of the others: one on each side, or both before the position.
        causal: whether both are before it.

    Call: x (B, L, width), present (B, L, 1) bool, or None without padding → (B, L, width); padding becomes 0.
    """

    def __init__(self, dilation: int, causal: bool = False, **kwargs):
        super().__init__(**kwargs)
        self.dilation, self.causal = dilation, causal

    def build(self, x_shape, present_shape=None):
        """Create the normalisation and the projection."""
        width = x_shape[-1]
        self.norm = layers.LayerNormalization(name="norm", dtype=self.dtype_policy)
        self.gates = layers.Dense(2 * width, name="gates", dtype=self.dtype_policy)
        self.norm.build(x_shape)
        self.gates.build((*x_shape[:-1], KERNEL * width))

    def call(self, x, present=None):
        """See the class."""
        present, shift = 1 if present is None else ops.cast(present, x.dtype), self.dilation
        y = self.norm(x) * present
        sides = [2 * shift, 0] if self.causal else [shift, shift]
        padded = ops.pad(y, [[0, 0], sides, [0, 0]])  # (B, L + 2 · shift, width)
        window = [padded[:, : -2 * shift], padded[:, shift:-shift], padded[:, 2 * shift :]]
        gated = self.gates(ops.concatenate(window, axis=-1))
        value, gate = ops.split(gated, 2, axis=-1)  # (B, L, width) each
        return (x + value * ops.sigmoid(gate)) * present

    def compute_output_shape(self, x_shape, present_shape=None):
        """(B, L, width) → the same."""
        return x_shape

    def multiply_accumulates(self, length: int) -> int:
        """For one sentence: the projection of three positions to value and gate."""
        return length * math.prod(self.gates.kernel.shape)


@_serializable
class CandidateLogits(layers.Layer):
    """Logits of the candidates only: hanzi vector · x + log prior + trained bias.

    Args:
        candidates: (tokens, K) int, hanzi ids, 0 in empty columns.
        priors: (tokens, K) float, -inf in empty columns.
        hanzi_size: tokens of the output vocabulary.

    Call: x (B, L, width), syllables (B, L) int32 → (B, L, K).
    """

    def __init__(
        self,
        candidates: np.ndarray | Sequence[Sequence[int]],
        priors: np.ndarray | Sequence[Sequence[float]],
        hanzi_size: int,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.candidates, self.hanzi_size = np.asarray(candidates, np.int32), hanzi_size
        self.priors = np.maximum(np.asarray(priors, np.float32), IMPOSSIBLE)

    def build(self, x_shape, syllables_shape=None):
        """Create the vectors of the hanzi and the bias."""
        width = x_shape[-1]
        spread = keras.initializers.RandomNormal(stddev=width**-0.5)
        self.hanzi = self.add_weight(shape=(self.hanzi_size, width), initializer=spread, name="hanzi")
        self.bias = self.add_weight(shape=self.candidates.shape, initializer="zeros", name="bias")

    def call(self, x, syllables):
        """See the class."""
        rows = ops.take(self.candidates, syllables, axis=0)  # (B, L, K)
        vectors = ops.take(self.hanzi, rows, axis=0)  # (B, L, K, width)
        products = ops.squeeze(ops.matmul(vectors, ops.expand_dims(x, -1)), -1)  # (B, L, K)
        return products + ops.take(self.priors, syllables, axis=0) + ops.take(self.bias, syllables, axis=0)

    def compute_output_shape(self, x_shape, syllables_shape=None):
        """(B, L, width) → (B, L, K)."""
        return (*x_shape[:-1], self.candidates.shape[1])

    def multiply_accumulates(self, length: int) -> int:
        """For one sentence: the products with the vectors of the candidates."""
        return length * self.candidates.shape[1] * self.hanzi.shape[1]

    def get_config(self):
        """The constructor's arguments."""
        tables = {"candidates": self.candidates.tolist(), "priors": self.priors.tolist()}
        return {**super().get_config(), **tables, "hanzi_size": self.hanzi_size}
