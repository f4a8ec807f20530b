"""Tests of analysis/weights/weight_file.py on files that Keras writes: names, order and values."""

import keras
import numpy as np
import pytest
from keras import layers

from analysis.weights.layer_statistics import find_output
from analysis.weights.weight_file import read_weight_file


@pytest.fixture(scope="module")
def model() -> keras.Model:
    """A model with a layer of each kind that our models have, an inner model and an optimiser."""
    keras.utils.clear_session()  # otherwise names count on from those of other tests
    inner = keras.Sequential(
        [keras.Input((4,)), layers.Dense(4, use_bias=False, name="inner")], name="encoder"
    )
    x = start = keras.Input((5, 4))
    for layer in (
        layers.Conv1D(6, 3, padding="same"),
        layers.BatchNormalization(),
        layers.DepthwiseConv1D(3, padding="same", use_bias=False),
        layers.LayerNormalization(),
        layers.Bidirectional(layers.GRU(3)),
        layers.Dense(4, name="front"),
        layers.Dropout(0.1),
        inner,
        layers.Dense(7, name="scores"),
    ):
        x = layer(x)
    model = keras.Model(start, x)
    model.compile("adam")
    model.set_weights([keras.random.normal(weight.shape).numpy() for weight in model.weights])
    return model


@pytest.mark.parametrize("name", ["model.weights.h5", "model.keras", "model.h5"])
def test_all_weights_with_their_names(model, tmp_path, name):
    path = tmp_path / name
    (model.save_weights if name.endswith(".weights.h5") else model.save)(path)
    file = read_weight_file(path)
    assert file.parameters == model.count_params()
    found = {f"{layer.name}/{weight.name}": weight.array for layer in file.layers for weight in layer.weights}
    expected = {
        w.path.split(":")[0].rpartition("/")[2]: np.asarray(w) for w in model.get_layer("front").weights
    }
    for part, values in expected.items():
        np.testing.assert_array_equal(found[f"front/{part}"], values)
    for ending in ("inner/kernel", "conv1d/kernel", "conv1d/bias", "gamma", "moving_variance"):
        assert any(key.endswith(ending) for key in found), (ending, list(found))
    assert sum(key.endswith("recurrent_kernel") for key in found) == 2
    output = find_output(file)
    assert (output.layer, output.classes) == ("scores", 7)
    assert output.guessed == name.endswith(".weights.h5")
