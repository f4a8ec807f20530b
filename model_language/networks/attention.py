"""Reads the attention weights of a transformer for one sentence, by block and head."""

from dataclasses import dataclass

import keras
import numpy as np

from model_language.batching import LONGEST_WINDOW
from model_language.networks.transformer import AttentionWeights
from utils.backend.prediction import predict, prepare_prediction
from utils.errors import CorpusError, RunError, require


@dataclass(frozen=True)
class Attention:
    """The attention of a transformer for one sentence of L syllables.

    Attributes:
        weights: (blocks, heads, L, L) float32; row i is the attention of position i and sums to 1.
        logits: output of the same forward pass, (L, hanzi) float32.
    """

    weights: np.ndarray
    logits: np.ndarray


def attend(model: keras.Model, syllables: np.ndarray) -> Attention:
    """Run the model on one sentence and return its attention.

    Args:
        model: result of ``build_transformer`` or ``build_published_transformer``.
        syllables: ids, (L,) int32, without padding, L ≥ 1.

    Raises:
        RunError: the model has no attention layers.
        CorpusError: the sentence has more than ``LONGEST_WINDOW`` syllables, the most that converters
            compute at once: the memory grows with the square of the length.
    """
    require(
        len(syllables) <= LONGEST_WINDOW,
        f"the sentence has {len(syllables):,} syllables, the limit is {LONGEST_WINDOW}",
        hint="give a part of it",
        error=CorpusError,
    )
    layers = [layer for layer in model.layers if isinstance(layer, AttentionWeights)]
    if not layers:
        raise RunError(
            f"the model '{model.name}' has no attention layers",
            hint="give a run of a transformer with at least one block",
        )
    outputs = {"logits": model.output, **{layer.name: layer.output for layer in layers}}
    observed = keras.Model(model.input, outputs)
    prepare_prediction(observed)
    found = predict(observed, {"syllables": np.asarray(syllables, np.int32)[None]})
    length = len(syllables)  # some backends pad the input
    weights = [np.asarray(found[layer.name], np.float32)[0, :, :length, :length] for layer in layers]
    return Attention(np.stack(weights), np.asarray(found["logits"], np.float32)[0, :length])
