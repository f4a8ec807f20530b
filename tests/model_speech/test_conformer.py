"""Tests of the Conformer against its papers: parameter counts, attention by distance, padding, training."""

import math

import keras
import numpy as np
import pytest

from model_speech.layers.normalisation import MaskedBatchNormalization
from model_speech.layers.relative_attention import RelativeAttention, RelativePositions, shift
from model_speech.models.conformer import ConformerConfig, build_conformer
from model_speech.registry import MODELS
from tests.support.acoustic_models import (
    assert_learns_through_a_recipe,
    assert_padding_has_no_influence,
    assert_survives_keras_files,
    assert_weights_round_trip,
    padded_batch,
)
from utils.backend.model_cost import multiply_accumulates
from utils.errors import ConfigError

SMALL = ConformerConfig(blocks=1, width=8, heads=2, kernel=6)
# Sizes in Gulati et al. 2020, table 1, and the millions of parameters of the whole transducer.
PUBLISHED = {
    "S": (ConformerConfig(), 10.3),
    "M": (ConformerConfig(width=256), 30.7),
    "L": (ConformerConfig(width=512, heads=8, blocks=17), 118.8),
}


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


def test_is_registered_by_name():
    assert MODELS["conformer"].config is ConformerConfig
    assert (ConformerConfig().name, ConformerConfig().time_stride) == ("conformer", 4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 0}, r"model\.width is 0, at least 1"),
        ({"blocks": -1}, r"model\.blocks is -1, at least 0"),
        ({"kernel": 0}, r"model\.kernel is 0, at least 1"),
        ({"dropout": 1.5}, r"model\.dropout is 1\.5, at least 0 and below 1"),
        ({"width": 10, "heads": 4}, r"model\.width 10 is not a multiple of model\.heads 4"),
    ],
)
def test_an_impossible_setting_is_named(settings, message):
    with pytest.raises(ConfigError, match=message):
        ConformerConfig(**settings)


@pytest.mark.parametrize(
    ("config", "bins", "classes"),
    [(SMALL, 7, 5), (ConformerConfig(blocks=1), 80, 1000)],
    ids=["tiny", "a block of S"],
)
def test_parameter_count_by_hand(config, bins, classes):
    model = build_conformer(config, bins, classes)
    trainable = sum(math.prod(variable.shape) for variable in model.trainable_variables)
    assert trainable == encoder_parameters(config, bins) + config.width * classes + classes


@pytest.mark.parametrize("size", PUBLISHED)
def test_the_published_counts_hold_the_encoder_and_a_decoder(size):
    """The rest belongs to the transducer: an LSTM of 320 or 640 units, embeddings, joint and output layer."""
    config, published = PUBLISHED[size]
    encoder = encoder_parameters(config, bins=80) / 1e6
    units = 320 if size == "S" else 640
    lstm = 4 * units * (2 * units + 1) / 1e6
    assert 0.8 * lstm < published - encoder < lstm + 1


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


def test_modules_stand_in_the_order_of_the_paper():
    model = build_conformer(SMALL, 7, 5)
    kinds = (RelativeAttention, keras.layers.DepthwiseConv1D, MaskedBatchNormalization)
    order = [
        type(layer).__name__ if isinstance(layer, kinds) else layer.units
        for layer in model.layers
        if isinstance(layer, (*kinds, keras.layers.Dense))
    ]
    assert order == [
        *[8, 32, 8, "RelativeAttention", 8, 8],  # output of the front; half a feed-forward; the gated unit
        *["DepthwiseConv1D", "MaskedBatchNormalization", 8],
        *[32, 8, 5],
    ]


def test_shift_finds_the_distance_of_each_pair():
    by_distance = np.random.default_rng(0).normal(size=(2, 3, 5, 9))  # distances 4 … -4
    found = np.asarray(shift(by_distance))
    for i in range(5):
        for k in range(5):
            np.testing.assert_array_equal(found[..., i, k], by_distance[..., i, 4 - (i - k)])


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


def test_padding_has_no_influence():
    assert_padding_has_no_influence(build_conformer(SMALL, 7, 5), 4, 7)


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


def test_half_precision_gives_float32_logits():
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = build_conformer(SMALL, 7, 5)
    finally:
        keras.config.set_dtype_policy("float32")
    logits = model({"features": np.ones((2, 16, 7), np.float32), "lengths": np.array([16, 3], np.int32)})
    assert logits.dtype == "float32"
    assert np.isfinite(logits).all()
    assert (
        next(layer for layer in model.layers if isinstance(layer, RelativeAttention)).compute_dtype
        == "bfloat16"
    )


def test_saving_and_loading(tmp_path):
    assert_weights_round_trip(lambda: build_conformer(SMALL, 7, 5), tmp_path)
    assert_survives_keras_files(build_conformer(SMALL, 7, 5), tmp_path)


@pytest.mark.nightly
def test_learns_through_a_recipe(tiny_manifest, tmp_path):
    settings = ["model.blocks=1", "model.width=16", "model.heads=2", "model.kernel=6"]
    assert_learns_through_a_recipe("conformer", settings, tiny_manifest, tmp_path)
