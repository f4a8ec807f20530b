"""Tests of importing published weights: logits against a network built by hand; wrong files are refused."""

from pathlib import Path

import keras
import numpy as np
import pytest

import inspect_model
from model_speech.acoustic_model import load_acoustic_model
from tests.support.legacy_weights import Layers, write_legacy
from tests.support.scripts import load_script
from tests.support.tiny_runs import write_language_run
from utils.audio.samples import write_wav
from utils.errors import RunError, VocabularyError
from utils.run_folder import checksums
from utils.run_folder.run import open_run
from utils.vocabulary import BLANK, SPACE

FILTERS, POOLED, WIDTH = (2, 3, 4, 4, 4), 3, 6
TOKENS = ("ni3", "hao3", "wo3", "LV4", "de", SPACE, BLANK)


def weights(classes: int = len(TOKENS)) -> Layers:
    """Weights of a small published DFCNN, with layers numbered as in a process that has built one before."""
    rng = np.random.default_rng(3)

    def array(*shape: int) -> np.ndarray:
        return rng.normal(0, 0.3, shape).astype(np.float32)

    layers, before = {"the_inputs": {}}, 1
    for number, filters in enumerate((width for width in FILTERS for _ in range(2)), start=11):
        name = f"conv2d_{number}"
        layers[name] = {f"{name}/kernel:0": array(3, 3, before, filters), f"{name}/bias:0": array(filters)}
        name, before = f"batch_normalization_{number}", filters
        layers[name] = {f"{name}/{part}:0": array(filters) for part in ("gamma", "beta", "moving_mean")}
        layers[name][f"{name}/moving_variance:0"] = rng.uniform(0.5, 2, filters).astype(np.float32)
    sizes = ((200 >> POOLED) * before, WIDTH, classes)
    for index, name in enumerate(("dense_3", "dense_4")):
        shape = sizes[index : index + 2]
        layers[name] = {f"{name}/kernel:0": array(*shape), f"{name}/bias:0": array(shape[1])}
    return layers


def by_hand(layers: Layers) -> keras.Model:
    """The same network as a sequence of plain Keras layers, without the softmax."""
    inputs = keras.Input((None, 200, 1))
    x, normalised = inputs, 0
    for name, arrays in layers.items():
        if name.startswith("conv2d"):
            layer = keras.layers.Conv2D(len(arrays[f"{name}/bias:0"]), 3, padding="same", activation="relu")
        elif name.startswith("batch"):
            layer, normalised = keras.layers.BatchNormalization(), normalised + 1
        elif name == "dense_3":
            x = keras.layers.Reshape((-1, x.shape[2] * x.shape[3]))(x)
            layer = keras.layers.Dense(WIDTH, activation="relu")
        elif name == "dense_4":
            layer = keras.layers.Dense(len(arrays[f"{name}/bias:0"]))
        else:
            continue
        x = layer(x)
        layer.set_weights(list(arrays.values()))
        if name.startswith("batch") and normalised % 2 == 0 and normalised <= 2 * POOLED:
            x = keras.layers.MaxPooling2D(2)(x)
    return keras.Model(inputs, x)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """``model.h5``, ``tokens.txt`` and the ``run`` made of them."""
    folder = tmp_path_factory.mktemp("legacy")
    write_legacy(folder / "model.h5", weights())
    write_tokens(folder / "tokens.txt", TOKENS)
    inspect_model.main(arguments(folder, "run"))
    return folder


def write_tokens(path: Path, tokens: tuple[str, ...]) -> None:
    path.write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")


def arguments(folder: Path, run: str, tokens: str = "tokens.txt") -> list[str]:
    return ["import", str(folder / "model.h5"), str(folder / run), "--tokens", str(folder / tokens)]


def test_logits_are_those_of_the_network_built_by_hand(folder):
    acoustic = load_acoustic_model(folder / "run")
    features = np.random.default_rng(1).uniform(0, 12, (2, 64, 200)).astype(np.float32)
    logits, lengths = acoustic.logits(list(features))
    expected = np.asarray(by_hand(weights())(features[..., None]))
    assert lengths.tolist() == [8, 8]
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-4)
    assert np.abs(expected).max() > 0.1
    assert (acoustic.features.kind, acoustic.features.normalise) == ("spectrogram", "none")


def test_tokens_become_canonical_with_the_blank_last(folder):
    acoustic = load_acoustic_model(folder / "run", "last")
    assert acoustic.vocabulary.tokens == ("ni3", "hao3", "wo3", "lv4", "de5", SPACE, BLANK)
    write_tokens(folder / "other_order.txt", (*TOKENS[:-2], BLANK, SPACE))
    inspect_model.main(arguments(folder, "other_order", "other_order.txt"))
    assert load_acoustic_model(folder / "other_order").vocabulary == acoustic.vocabulary


def test_a_list_saved_by_windows_gives_the_same_vocabulary(folder):
    text = "".join(f"{token}\r\n" for token in TOKENS)
    (folder / "windows.txt").write_text(text, encoding="utf-8-sig", newline="")
    inspect_model.main(arguments(folder, "windows", "windows.txt"))
    assert load_acoustic_model(folder / "windows").vocabulary.tokens[:2] == ("ni3", "hao3")


def test_the_run_transcribes(folder, tmp_path, capsys):
    write_wav(tmp_path / "a.wav", np.random.default_rng(0).normal(0, 0.1, 16_000), 16_000)
    language = write_language_run(tmp_path / "language", Path("none.tsv"))
    command = [str(tmp_path / "a.wav"), "--speech", str(folder / "run"), "--language", str(language)]
    assert load_script("transcribe.py").main(command) == 0
    assert open_run(folder / "run", "speech").config()["imported"]["weights"] == str(folder / "model.h5")
    assert checksums.exist(folder / "run")
    assert not checksums.differences(folder / "run")


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (TOKENS[1:], "the weights have 7 classes, the list has 6 tokens"),
        (("x", *TOKENS), "the weights have 7 classes, the list has 8 tokens"),
        ((*TOKENS[:-2], BLANK, "wo1"), "the last token is 'wo1', not the blank '_'"),
        (("ni3", "Ni3", *TOKENS[2:]), "'Ni3' and 'ni3' are both 'ni3'"),
    ],
)
def test_a_list_of_another_training_is_refused(folder, tokens, message):
    write_tokens(folder / "wrong.txt", tokens)
    with pytest.raises(VocabularyError, match=message):
        inspect_model.main(arguments(folder, "wrong", "wrong.txt"))
    assert not (folder / "wrong").exists()


def test_another_network_is_refused_and_the_supported_network_is_named(tmp_path):
    layers = weights()
    dense, convolution = np.zeros((77, 6)), np.zeros((5, 5, 2, 2))
    cases = {
        "not a DFCNN: 10 conv2d, 9 batch_normalization, 2 dense": {
            name: arrays for name, arrays in layers.items() if name != "batch_normalization_20"
        },
        "which no number of poolings gives": layers
        | {"dense_3": {"dense_3/kernel:0": dense, "dense_3/bias:0": np.zeros(6)}},
        r"kernel is \(5, 5, 2, 2\), not": layers
        | {"conv2d_12": {"conv2d_12/kernel:0": convolution, "conv2d_12/bias:0": np.zeros(2)}},
        "not a DFCNN: 1 embedding": {"embedding_1": {"embedding_1/embeddings:0": np.zeros((100, 8))}},
    }
    write_tokens(tmp_path / "tokens.txt", TOKENS)
    for message, changed in cases.items():
        write_legacy(tmp_path / "model.h5", changed)
        with pytest.raises(RunError, match=message) as caught:
            inspect_model.main(arguments(tmp_path, "run"))
        assert "supported: the DFCNN with CTC" in caught.value.hint
    assert not (tmp_path / "run").exists()


def test_weights_of_a_diverged_training_are_refused(tmp_path):
    layers = weights()
    layers["dense_4"]["dense_4/bias:0"][2] = np.nan
    write_legacy(tmp_path / "model.h5", layers)
    write_tokens(tmp_path / "tokens.txt", TOKENS)
    with pytest.raises(RunError, match=r"weights that are not finite: 1 of .*dense_4/bias"):
        inspect_model.main(arguments(tmp_path, "run"))
    assert not (tmp_path / "run").exists()


def test_an_existing_folder_is_left_alone(folder):
    with pytest.raises(RunError, match="already exists"):
        inspect_model.main(arguments(folder, "run"))
