"""Tests of the Conformer against its papers: parameter counts, attention by distance, gradients."""

import math

import keras
import numpy as np
import pytest

from model_speech.layers.relative_attention import RelativeAttention, RelativePositions
from model_speech.models.conformer import ConformerConfig, build_conformer
from tests.support.acoustic_models import (
    padded_batch,
)
from utils.backend.model_cost import multiply_accumulates

SMALL = ConformerConfig(blocks=1, width=8, heads=2, kernel=6)


def encoder_parameters(config: ConformerConfig, bins: int) -> int:
    """Trainable parameters below the logits, counted by hand."""
    d, quarter = config.width, math.ceil(math.ceil(bins / 2) / 2)
    norm = 2 * d
    feed_forward = norm + (d * 4 * d + 4 * d) + (4 * d * d + d)
    attention = norm + 4 * (d * d + d) + d * d + 2 * d  # four projections; distances without a bias; u and v
    convolution = (
        norm + (d * 2 * d + 2 * d) + config.kernel * d + norm + (d * d + d)
    )  # GLU, depthwise, pointwise
    block = 2 * feed_forward + attention + convolution + norm
    return (9 * d + d) + (9 * d * d + d) + (quarter * d * d + d) + config.blocks * block


@pytest.mark.parametrize(
    ("config", "bins", "classes"),
    [(SMALL, 7, 5), (ConformerConfig(blocks=1), 80, 1000)],
    ids=["tiny", "a block of S"],
)
def test_parameter_count_by_hand(config, bins, classes):
    model = build_conformer(config, bins, classes)
    trainable = sum(math.prod(variable.shape) for variable in model.trainable_variables)
    assert trainable == encoder_parameters(config, bins) + config.width * classes + classes


@pytest.mark.parametrize(
    ("width", "heads", "blocks", "published"), [(176, 4, 16, 13), (256, 4, 18, 30), (512, 8, 18, 121)]
)
def test_the_counts_of_the_published_ctc_conformers(width, heads, blocks, published):
    """NVIDIA NeMo, conformer_ctc_bpe.yaml: the same encoder under CTC with 128 word pieces, kernel 31."""
    config = ConformerConfig(width=width, heads=heads, blocks=blocks, kernel=31)
    count = encoder_parameters(config, bins=80) + width * 129 + 129
    assert count / 1e6 == pytest.approx(published, rel=0.02)


def test_multiply_accumulates_by_hand():
    d, frames, bins, classes = 8, 10, 7, 5
    front = 20 * 4 * 9 * 1 * d + 10 * 2 * 9 * d * d + frames * 2 * d * d  # (time, bins) after each stride
    feed_forward = frames * 2 * 4 * d * d
    attention = frames * 4 * d * d + 19 * d * d + frames * d * (frames + 19 + frames)
    convolution = frames * (2 * d * d + 6 * d + d * d)
    block = 2 * feed_forward + attention + convolution
    model = build_conformer(SMALL, bins, classes)
    assert multiply_accumulates(model, 40) == front + block + frames * d * classes


def test_attention_by_the_formula():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1, 4, 6)).astype(np.float32)
    positions = np.asarray(RelativePositions()(x))[0]  # (7, 6): distances 3 … -3
    layer = RelativeAttention(heads=2)
    valid = np.array([[True, True, True, False]])
    layer(x, positions[None], valid)
    layer.set_weights([rng.normal(size=w.shape).astype(np.float32) for w in layer.get_weights()])
    kernel = {name: np.asarray(getattr(layer, name).kernel) for name in ("query", "key", "value", "position")}
    bias = {name: np.asarray(getattr(layer, name).bias) for name in ("query", "key", "value")}
    u, v = np.asarray(layer.content_bias)[:, 0], np.asarray(layer.position_bias)[:, 0]  # (2, 3)
    query, key, value = (x[0] @ kernel[name] + bias[name] for name in ("query", "key", "value"))
    relative = positions @ kernel["position"]
    mixed = np.zeros((4, 6))
    for head in range(2):
        part = slice(3 * head, 3 * head + 3)
        for i in range(4):
            scores = [
                (query[i, part] + u[head]) @ key[k, part]
                + (query[i, part] + v[head]) @ relative[3 - (i - k), part]
                for k in range(3)
            ]
            weights = np.exp(np.array(scores) / math.sqrt(3))
            mixed[i, part] = weights / weights.sum() @ value[:3, part]
    expected = mixed @ np.asarray(layer.projection.kernel) + np.asarray(layer.projection.bias)
    np.testing.assert_allclose(layer(x, positions[None], valid)[0], expected, atol=1e-4)


def test_sinusoids_distinguish_distances():
    table = np.asarray(RelativePositions()(np.zeros((2, 3, 4), np.float32)))
    angle = np.arange(2, -3, -1)[:, None] * np.array([1.0, 0.01])
    np.testing.assert_allclose(table, np.concatenate([np.sin(angle), np.cos(angle)], axis=1)[None], atol=1e-6)


def test_every_weight_gets_a_gradient_that_padding_leaves_alone():
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    model = build_conformer(ConformerConfig(blocks=1, width=8, heads=2, kernel=6, dropout=0.0), 7, 5)
    features, lengths = padded_batch(7)

    def gradients(padding):
        padded = np.pad(features, ((0, 0), (0, padding), (0, 0)), constant_values=3.0)
        with tf.GradientTape() as tape:
            logits = model({"features": padded, "lengths": lengths}, training=True)
            loss = sum(tf.reduce_sum(logits[row, :frames] ** 3) for row, frames in enumerate((12, 8, 4)))
        return tape.gradient(loss, model.trainable_variables)

    for tight, wide, variable in zip(gradients(0), gradients(11), model.trainable_variables, strict=True):
        np.testing.assert_allclose(wide, tight, rtol=1e-3, atol=1e-3, err_msg=variable.path)
        if not variable.path.endswith("key/bias"):  # adds the same value to all scores of a frame
            assert np.abs(tight).max() > 1e-6, variable.path
