"""Causal gated CNN, in Keras: a language model of hanzi, which predicts each hanzi from those before it.

Each layer reads a position and two before it, ``dilation`` apart (Dauphin et al. 2017, "Language Modeling
with Gated Convolutional Networks"). The vectors of the hanzi serve as inputs and as output weights (Press &
Wolf 2017, "Using the Output Embedding to Improve Language Models"). It is trained by a sampled softmax and
run by NumPy (:mod:`model_language.networks.causal_cnn_numpy`), which rescores the hypotheses of a recogniser.
"""

import keras
import numpy as np
from keras import layers, ops

from model_language.networks.causal_cnn_numpy import CausalCnnConfig, CausalCnnWeights
from model_language.networks.gated_cnn import GatedNeighbours

_FAR_BELOW = -1e9  # logit of a class whose probability is 0

_serializable = keras.saving.register_keras_serializable(package="model_language")


def build_causal_cnn(config: CausalCnnConfig, hanzi_size: int) -> keras.Model:
    """Build the model.

    Args:
        config: geometry.
        hanzi_size: tokens of the vocabulary; id 0 is the boundary between lines.

    Returns:
        Model of ``{"hanzi": (B, L) int32}`` → (B, L, width) float32, the hidden state of each position, which
        predicts the next hanzi. :func:`sampled_losses` computes the training loss from it;
        :mod:`model_language.networks.causal_cnn_numpy` computes log-probabilities in NumPy.
    """
    hanzi = keras.Input((None,), dtype="int32", name="hanzi")
    x = HanziVectors(hanzi_size, config.width, name="vectors")(hanzi)  # (B, L, width)
    for number, dilation in enumerate(config.dilations, start=1):
        x = GatedNeighbours(dilation, causal=True, name=f"neighbours_{number}")(x)
    x = layers.LayerNormalization(dtype="float32", name="final_norm")(x)
    return keras.Model({"hanzi": hanzi}, x, name=config.name)


def sampled_losses(model: keras.Model, hanzi, negatives, log_frequencies, training: bool = True):
    """Cross-entropy of a sampled softmax (Jean et al. 2015, "On Using Very Large Target Vocabulary").

    Args:
        model: result of :func:`build_causal_cnn`.
        hanzi: (B, L) int32, ids plus 1; 0 after the end of a row.
        negatives: (B, N) int32, ids plus 1, drawn by the frequencies for the whole batch: the same in each
            row, so that a part of the rows has them all; 0 in rows of padding.
        log_frequencies: (hanzi,) float32, logs of the frequencies by which they were drawn.
        training: whether layers are in training mode.

    Returns:
        (B,) float32, mean over the positions of each row after the first, in nats.
    """
    known = ops.maximum(hanzi - 1, 0)
    hidden = model({"hanzi": known[:, :-1]}, training=training)  # (B, L - 1, width)
    targets, used = known[:, 1:], ops.cast(hanzi[:, 1:] > 0, "float32")
    vectors, bias = (ops.convert_to_tensor(weight) for weight in model.get_layer("vectors").weights)
    bias = bias - log_frequencies  # corrects for the draw
    own = ops.sum(hidden * ops.take(vectors, targets, axis=0), axis=-1) + ops.take(bias, targets)
    drawn = ops.max(negatives, axis=0)  # (N,)
    others = ops.maximum(drawn - 1, 0)
    logits = ops.matmul(hidden, ops.transpose(ops.take(vectors, others, axis=0))) + ops.take(bias, others)
    unusable = ops.logical_or(others == ops.expand_dims(targets, -1), drawn == 0)
    logits = ops.where(unusable, _FAR_BELOW, logits)  # (B, L - 1, N)
    total = ops.logaddexp(ops.logsumexp(logits, axis=-1), own)
    return ops.sum((total - own) * used, axis=1) / ops.maximum(ops.sum(used, axis=1), 1.0)


def numpy_weights(model: keras.Model, frequent: np.ndarray | None = None) -> CausalCnnWeights:
    """The weights of a network for NumPy, float32.

    Args:
        model: result of :func:`build_causal_cnn`.
        frequent: see :class:`CausalCnnWeights`; None: all hanzi.
    """
    array, vectors = ops.convert_to_numpy, model.get_layer("vectors")
    gated = [layer for layer in model.layers if isinstance(layer, GatedNeighbours)]
    norms = [*(layer.norm for layer in gated), model.get_layer("final_norm")]
    return CausalCnnWeights(
        vectors=array(vectors.vectors),
        bias=array(vectors.bias),
        norms=np.stack([np.stack([array(norm.gamma), array(norm.beta)]) for norm in norms]),
        kernels=np.stack([array(layer.gates.kernel) for layer in gated]),
        biases=np.stack([array(layer.gates.bias) for layer in gated]),
        dilations=np.array([layer.dilation for layer in gated]),
        frequent=np.arange(vectors.size) if frequent is None else frequent,
    )


@_serializable
class HanziVectors(layers.Layer):
    """The vector of each hanzi, scaled to unit variance; also holds the bias of each hanzi as an output.

    Args:
        size: number of hanzi.
        width: size of the vectors.

    Call: ids (B, L) int32 → (B, L, width).
    """

    def __init__(self, size: int, width: int, **kwargs):
        super().__init__(**kwargs)
        self.size, self.width = size, width

    def build(self, shape):
        """Create the vectors and the bias."""
        spread = keras.initializers.RandomNormal(stddev=self.width**-0.5)
        self.vectors = self.add_weight(shape=(self.size, self.width), initializer=spread, name="vectors")
        self.bias = self.add_weight(shape=(self.size,), initializer="zeros", name="bias")

    def call(self, hanzi):
        """See the class."""
        return ops.take(self.vectors, hanzi, axis=0) * self.width**0.5

    def compute_output_shape(self, shape):
        """(B, L) → (B, L, width)."""
        return (*shape, self.width)
