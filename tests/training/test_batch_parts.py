"""Tests of batches that are computed in parts."""

import keras
import numpy as np
import pytest
from keras import layers

from model_speech.layers.normalisation import MaskedBatchNormalization
from training.backends.step import in_parts, make_train_step


def _squares(seen: list[int]):
    """Losses that are functions of a row alone; ``seen`` gets the rows of each call."""

    def losses(arrays, training):
        seen.append(len(arrays["x"]))
        return keras.ops.sum(arrays["x"] ** 2, axis=1) + arrays["shift"]

    return losses


@pytest.mark.parametrize(
    ("rows", "parts", "sizes"), [(7, 2, [3, 4]), (6, 3, [2, 2, 2]), (5, 4, [1, 1, 1, 2]), (1, 3, [1, 1, 1])]
)
def test_losses_come_in_the_order_of_the_rows(rows, parts, sizes):
    rng = np.random.default_rng(0)
    arrays = {"x": rng.normal(size=(rows, 3)).astype(np.float32), "shift": np.arange(rows, dtype=np.float32)}
    seen: list[int] = []
    losses = in_parts(_squares(seen), parts)(arrays, True)
    np.testing.assert_allclose(losses, (arrays["x"] ** 2).sum(axis=1) + arrays["shift"], rtol=1e-6)
    assert seen == sizes


def _trained(parts: int, rows: int) -> list[np.ndarray]:
    """The weights after three steps of a small model."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((3,)), layers.Dense(4, activation="tanh"), layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build(model.trainable_variables)

    def losses(arrays, training):
        return keras.ops.square(model(arrays["x"], training=training)[:, 0] - arrays["y"])

    step = make_train_step(model, optimizer, in_parts(losses, parts), xla=False)
    rng = np.random.default_rng(1)
    for _ in range(3):
        x = rng.normal(size=(rows, 3)).astype(np.float32)
        step({"x": x, "y": x.sum(axis=1)})
    return model.get_weights()


@pytest.mark.parametrize("rows", [9, 2, 1])
def test_the_update_is_that_of_the_whole_batch(rows):
    for whole, parted in zip(_trained(1, rows), _trained(3, rows), strict=True):
        np.testing.assert_allclose(parted, whole, rtol=1e-5, atol=1e-6)


def test_a_part_of_padding_does_not_change_the_running_statistics():
    frames = np.random.default_rng(0).normal(1.0, 2.0, (1, 6, 3)).astype(np.float32)
    statistics = []
    for parts in (1, 2):
        norm = MaskedBatchNormalization(momentum=0.9)

        def losses(arrays, training, norm=norm):
            valid = keras.ops.arange(6)[None] < arrays["lengths"][:, None]
            return keras.ops.sum(norm(arrays["x"], valid, training=training), axis=(1, 2))

        in_parts(losses, parts)({"x": frames, "lengths": np.array([6], np.int32)}, True)
        statistics.append([np.asarray(weight) for weight in norm.non_trainable_weights])
    np.testing.assert_allclose(statistics[1], statistics[0], rtol=1e-6)
