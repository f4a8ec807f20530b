"""Tests of importing the published transformer: logits against a computation by hand; refused files."""

from pathlib import Path

import numpy as np
import pytest

import convert
import inspect_model
from model_language.registry import load_network
from tests.support.legacy_weights import Layers, write_legacy
from utils.errors import RunError, VocabularyError
from utils.run_folder import checksums

WIDTH, HEADS, BLOCKS, INNER, POSITIONS = 16, 8, 2, 32, 6
PINYIN = ("<PAD>", "ni3", "hao3", "LV4", "zhong1", "guo2")
HANZI = ("<PAD>", "好", "你", "国", "绿", "中", "钟")


def weights(inputs: int = len(PINYIN), projections: int = 3) -> Layers:
    """A small copy of the published transformer, in the order of the original's graph."""
    rng = np.random.default_rng(5)
    layers: dict[str, dict[str, np.ndarray]] = {"input_1": {}}

    def add(kind: str, **arrays: np.ndarray) -> None:
        name = f"{kind}_{len(layers)}"
        layers[name] = {f"{name}/{part}:0": array.astype(np.float32) for part, array in arrays.items()}

    def dense(kind: str, *shape: int) -> None:
        add(kind, kernel=rng.normal(0, 0.4, shape), bias=rng.normal(0, 0.2, shape[-1]))

    def normalisation() -> None:
        add("layer_normalization", gamma=rng.uniform(0.5, 1.5, WIDTH), beta=rng.normal(0, 0.2, WIDTH))

    add("embedding", embeddings=rng.normal(0, 0.3, (inputs, WIDTH)))
    add("embedding", embeddings=rng.normal(0, 0.3, (POSITIONS, WIDTH)))
    for _ in range(BLOCKS):
        for _ in range(projections):
            dense("dense", WIDTH, WIDTH)
        normalisation()
    dense("conv1d", 1, WIDTH, INNER)
    dense("conv1d", 1, INNER, WIDTH)
    normalisation()
    dense("dense", WIDTH, len(HANZI))
    return layers


def by_hand(layers: Layers, ids: list[int]) -> np.ndarray:
    """Logits (len(ids), hanzi) of one sentence without padding, in NumPy; ids of the original's list."""
    arrays = iter([list(arrays.values()) for arrays in layers.values() if arrays])
    x = next(arrays)[0][ids] * np.sqrt(WIDTH) + next(arrays)[0][: len(ids)]

    def dense(x: np.ndarray) -> np.ndarray:
        kernel, bias = next(arrays)
        return x @ kernel.reshape(kernel.shape[-2:]) + bias

    def normalised(x: np.ndarray) -> np.ndarray:
        gamma, beta = next(arrays)
        return gamma * (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-8) + beta

    for _ in range(BLOCKS):
        query, key, value = (
            np.maximum(dense(x), 0).reshape(len(ids), HEADS, -1).swapaxes(0, 1) for _ in range(3)
        )
        scores = np.exp(query @ key.swapaxes(1, 2) / np.sqrt(WIDTH / HEADS))
        mixed = (scores / scores.sum(-1, keepdims=True)) @ value  # (heads, L, width / heads)
        x = normalised(x + mixed.swapaxes(0, 1).reshape(len(ids), WIDTH))
    x = normalised(x + dense(np.maximum(dense(x), 0)))
    return dense(x)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """``lm.h5``, its two token lists and the ``run`` made of them."""
    folder = tmp_path_factory.mktemp("legacy_transformer")
    write_legacy(folder / "lm.h5", weights())
    write_tokens(folder / "pinyin.txt", PINYIN)
    write_tokens(folder / "hanzi.txt", HANZI)
    inspect_model.main(arguments(folder, "run"))
    return folder


def write_tokens(path: Path, tokens: tuple[str, ...]) -> None:
    path.write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")


def arguments(folder: Path, run: str, weights: str = "lm.h5", pinyin: str = "pinyin.txt") -> list[str]:
    lists = ["--tokens", str(folder / pinyin), "--hanzi", str(folder / "hanzi.txt")]
    return ["import", str(folder / weights), str(folder / run), *lists]


def test_logits_are_those_of_the_computation_by_hand(folder):
    model, symbols = load_network(folder / "run")
    syllables = ["zhong1", "guo2", "ni3", "hao3", "lv4"]
    padded = np.zeros((1, 8), np.int32)
    padded[0, :5] = symbols.encode(syllables)
    logits = np.asarray(model({"syllables": padded}))[0, :5]
    expected = by_hand(weights(), [4, 5, 1, 2, 3])
    ours = [symbols.hanzi.index(token) for token in HANZI[1:]]
    np.testing.assert_allclose(logits[:, ours], expected[:, 1:], rtol=1e-4, atol=1e-4)
    assert np.ptp(expected) > 1


def test_the_run_converts_and_has_checksums(folder, capsys):
    (folder / "lines.txt").write_text("ni3 hao3\nguo2 lv4\n", encoding="utf-8")
    convert.main([str(folder / "lines.txt"), "--model", str(folder / "run")])
    assert capsys.readouterr().out == "你好\n国绿\n"
    assert not checksums.differences(folder / "run")


def test_a_sentence_longer_than_the_positions_is_converted(folder):
    model, symbols = load_network(folder / "run")
    ids = symbols.encode(["ni3", "hao3"] * POSITIONS)[None]
    logits = np.asarray(model({"syllables": ids}))
    assert logits.shape == (1, 2 * POSITIONS, len(HANZI) + 1)
    assert np.isfinite(logits).all()


def write_checkpoint(prefix: Path, layers: Layers, left_out: str = "") -> None:
    """Save the arrays as the graph of the original, with the state of its optimiser."""
    tf = pytest.importorskip("tensorflow").compat.v1
    blocks = [f"num_blocks_{number}/multihead_attention" for number in range(BLOCKS)]
    scopes = ["enc_embed", "enc_pe"]
    for block in blocks:
        scopes += [f"{block}/dense", f"{block}/dense_1", f"{block}/dense_2", f"{block}/ln"]
    feed_forward = ("conv1d", "conv1d_1", "ln")
    scopes += [*(f"multihead_attention/{name}" for name in feed_forward), "dense"]
    parts = {"embeddings": "lookup_table", "gamma": "Variable_1", "beta": "Variable"}
    with tf.Graph().as_default(), tf.Session() as session:
        for scope, arrays in zip(scopes, filter(None, layers.values()), strict=True):
            for name, array in arrays.items():
                part = name.rpartition("/")[2].removesuffix(":0")
                full = f"{scope}/{parts.get(part, part)}"
                if full != left_out:
                    tf.Variable(array, name=full)
                    tf.Variable(np.zeros_like(array), name=f"{full}/Adam")
        tf.Variable(0.9, name="beta1_power")
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(prefix))


def test_a_checkpoint_of_tensorflow_1_is_the_same_network(folder):
    write_checkpoint(folder / "model_20", weights())
    for number, name in enumerate(("model_20.index", "model_20")):
        inspect_model.main(arguments(folder, f"checkpoint{number}", name))
        model, symbols = load_network(folder / f"checkpoint{number}")
        logits = np.asarray(model({"syllables": symbols.encode(["zhong1", "guo2", "ni3"])[None]}))[0]
        ours = [symbols.hanzi.index(token) for token in HANZI[1:]]
        expected = by_hand(weights(), [4, 5, 1])
        np.testing.assert_allclose(logits[:, ours], expected[:, 1:], rtol=1e-4, atol=1e-4)


def test_a_checkpoint_of_another_network_or_half_of_it_is_refused(folder):
    write_checkpoint(folder / "other", weights(), left_out="multihead_attention/conv1d/bias")
    with pytest.raises(RunError, match="no variable 'multihead_attention/conv1d/bias'"):
        inspect_model.main(arguments(folder, "refused", "other.index"))
    write_checkpoint(folder / "half", weights())
    (folder / "half.data-00000-of-00001").unlink()
    with pytest.raises(RunError, match=r"the checkpoint can't be read .*\.data-00000-of-00001"):
        inspect_model.main(arguments(folder, "refused", "half.index"))
    assert not (folder / "refused").exists()


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (PINYIN[1:], "the weights have 6 tokens, the list has 5"),
        ((*PINYIN[1:], "<PAD>"), "the first token is 'ni3', not the padding '<PAD>'"),
        (("<PAD>", "Ni3", "ni3", *PINYIN[3:]), "'ni3' occurs twice"),
    ],
)
def test_a_list_of_another_training_is_refused(folder, tokens, message):
    write_tokens(folder / "wrong.txt", tokens)
    with pytest.raises(VocabularyError, match=message):
        inspect_model.main(arguments(folder, "wrong", pinyin="wrong.txt"))
    assert not (folder / "wrong").exists()


def test_another_transformer_is_refused(folder):
    write_legacy(folder / "other.h5", weights(projections=4))
    with pytest.raises(RunError, match="not the published transformer: its layers are embedding, embedding"):
        inspect_model.main(arguments(folder, "other", "other.h5"))
    assert not (folder / "other").exists()
