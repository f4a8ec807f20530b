"""Tests of inspect_model.py significance: values by hand, injected weak channels, the picture."""

import keras
import numpy as np
import pytest
from keras import layers
from matplotlib.image import imread

import inspect_model
from analysis.weights.significance import channel_significance, cut_share, significances
from analysis.weights.weight_file import read_weight_file
from tests.support.legacy_weights import write_legacy
from utils.errors import ConfigError, RunError

RNG = np.random.default_rng(3)


def test_by_hand():
    kernel = np.array([[1.0, -4.0, 0.0], [-3.0, 4.0, 0.002]])
    np.testing.assert_allclose(channel_significance(kernel), [2 / 4, 1.0, 0.001 / 4])


def test_a_depthwise_convolution_has_its_channels_in_two_axes():
    kernel = RNG.normal(size=(7, 4, 2))
    means = np.abs(kernel).mean(axis=0)  # (in, multiplier)
    np.testing.assert_allclose(channel_significance(kernel, channel_axes=2), (means / means.max()).ravel())


def test_a_kernel_of_zeros_is_insignificant_throughout():
    assert channel_significance(np.zeros((3, 4))).tolist() == [0.0] * 4


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Channels 1 and 3 of the convolution and half of the depthwise ones are weak; so is a class, 'c'."""
    convolution, depthwise = RNG.uniform(0.5, 1, (3, 3, 2, 5)), RNG.uniform(0.5, 1, (7, 4, 1))
    scores, bias = RNG.uniform(0.5, 1, (6, 4)), np.ones(5)
    convolution[..., [1, 3]] *= 1e-4
    depthwise[:, :2] *= 1e-4
    scores[:, 2] = 0
    weights = {
        "conv2d_1": {"conv2d_1/kernel:0": convolution, "conv2d_1/bias:0": bias},
        "depthwise_conv1d_1": {"depthwise_conv1d_1/depthwise_kernel:0": depthwise},
        "embedding_1": {"embedding_1/embeddings:0": np.zeros((9, 3))},
        "dense_1": {"dense_1/kernel:0": scores},
    }
    return write_legacy(tmp_path_factory.mktemp("significance") / "model.h5", weights)


def test_planted_weak_channels_could_be_pruned(model):
    found = {significance.layer: significance for significance in significances(read_weight_file(model))}
    assert list(found) == ["conv2d_1", "depthwise_conv1d_1", "dense_1"]
    assert np.flatnonzero(found["conv2d_1"].values < 1e-3).tolist() == [1, 3]
    assert np.flatnonzero(found["depthwise_conv1d_1"].values < 1e-3).tolist() == [0, 1]
    assert found["conv2d_1"].cut(1e-3) == 2 * (3 * 3 * 2 + 1)  # with their biases
    assert found["depthwise_conv1d_1"].cut(1e-3) == 2 * 7
    assert found["dense_1"].is_output and found["dense_1"].cut(1.0) == 0  # a class is never pruned
    everything = (3 * 3 * 2 + 1) * 5 + 7 * 4 + 6 * 4
    assert cut_share(list(found.values()), 1e-3) == (38 + 14) / everything


def test_the_table(model, capsys):
    inspect_model.main(["significance", str(model)])
    out = capsys.readouterr().out
    conv, depthwise, scores = (line.split() for line in out.splitlines()[1:4])
    assert (conv[2], conv[5], conv[6], conv[7]) == ("5", "2", "95", "38")
    assert (depthwise[5], scores[-1]) == ("2", "(classes)")
    assert f"5 of 13 channels; with them {100 * 52 / 147:.2f} %" in out
    inspect_model.main(["significance", str(model), "--threshold", "0.00001"])
    assert "below 1e-05: 1 of 13 channels; with them 0.00 %" in capsys.readouterr().out


def test_the_channels_of_one_layer_weakest_first(model, capsys):
    inspect_model.main(["significance", str(model), "--layer", "conv2d_1"])
    channels = [line.split()[0] for line in capsys.readouterr().out.splitlines()[2:]]
    assert set(channels[:2]) == {"1", "3"} and len(channels) == 5


def test_the_picture_is_written_and_shows_something(model, tmp_path):
    inspect_model.main(["significance", str(model), "--output", str(tmp_path / "new" / "picture.png")])
    picture = imread(tmp_path / "new" / "picture.png")
    assert picture.shape[1] == 11 * 120 and picture[..., :3].std() > 0.05
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["picture.png"]


def test_mistakes_are_reported(model, tmp_path):
    with pytest.raises(ConfigError, match=r"cannot be drawn as '\.docx'"):
        inspect_model.main(["significance", str(model), "--output", str(tmp_path / "picture.docx")])
    with pytest.raises(RunError, match="no kernel in layer 'embedding_1'"):
        inspect_model.main(["significance", str(model), "--layer", "embedding_1"])
    bad = write_legacy(tmp_path / "nan.h5", {"dense_1": {"dense_1/kernel:0": np.full((2, 2), np.nan)}})
    with pytest.raises(RunError, match="kernel of 'dense_1' has NaN"):
        inspect_model.main(["significance", str(bad)])
    none = write_legacy(tmp_path / "none.h5", {"embedding_1": {"embedding_1/embeddings:0": np.ones((2, 2))}})
    with pytest.raises(RunError, match="no layer of this file has a kernel"):
        inspect_model.main(["significance", str(none)])


def test_separable_convolutions_and_attention_are_rated(tmp_path):
    """Weights as Keras 3 numbers them; a head's channels are those of the last two axes."""
    keras.utils.clear_session()
    x = inputs = keras.Input((6, 4))
    x = layers.SeparableConv1D(4, 3)(x)
    x = layers.MultiHeadAttention(2, 3)(x, x)
    x = layers.MultiHeadAttention(2, 3, use_bias=False)(x, x)
    keras.Model(inputs, x).save_weights(tmp_path / "model.weights.h5")
    file = read_weight_file(tmp_path / "model.weights.h5")
    found = {(each.layer, each.kernel): each for each in significances(file)}
    sizes = {key: (len(each.values), each.weights_per_channel) for key, each in found.items()}
    heads = {("multi_head_attention", f"{part}_dense/kernel"): (6, 5) for part in ("query", "key", "value")}
    plain = {
        ("multi_head_attention_1", kernel): (channels, 4) for (_, kernel), (channels, _) in heads.items()
    }
    assert sizes == heads | plain | {
        ("multi_head_attention", "output_dense/kernel"): (4, 7),
        ("multi_head_attention_1", "output_dense/kernel"): (4, 6),
        ("separable_conv1d", "depthwise_kernel"): (4, 3),
        ("separable_conv1d", "pointwise_kernel"): (4, 5),
    }
