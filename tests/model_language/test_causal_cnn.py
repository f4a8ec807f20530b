"""Tests of the language model of hanzi: the Keras network, its NumPy form, its file, training and errors."""

import json
from pathlib import Path

import keras
import numpy as np
import pytest

from data.text.pinyin_pair_preparation import prepare_pairs
from model_language.networks.causal_cnn import build_causal_cnn, numpy_weights, sampled_losses
from model_language.networks.causal_cnn_numpy import (
    CausalCnnConfig,
    CausalCnnWeights,
    NumpyCausalCnn,
    TextRowsConfig,
)
from model_language.registry import load_language_model
from model_language.vocabulary.symbols import PAD_ID
from training.run import train_from_config
from training.tasks.causal_cnn import HanziBatches, text_rows
from utils.arrays import log_softmax
from utils.errors import ConfigError, RunError
from utils.run_folder.run import RunFolder
from utils.vocabulary import Vocabulary, language_vocabulary

SIZE = 40
CONFIG = CausalCnnConfig(width=8, dilations=(1, 1, 2, 3))


@pytest.fixture(scope="module")
def model() -> keras.Model:
    built = build_causal_cnn(CONFIG, SIZE)
    random = np.random.default_rng(4)
    for variable in built.trainable_variables:  # no zeros: each weight has an effect
        variable.assign(random.normal(scale=0.5, size=variable.shape))
    return built


@pytest.fixture(scope="module")
def network(model) -> NumpyCausalCnn:
    return NumpyCausalCnn(numpy_weights(model))


def sequences(lengths, seed=0) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.integers(2, SIZE, size=length) for length in lengths]


def keras_logits(model: keras.Model, hanzi: np.ndarray) -> np.ndarray:
    """Logits of what follows each of the hanzi: (L,) ids → (L, SIZE)."""
    hidden = np.asarray(model({"hanzi": hanzi[None].astype(np.int32)}))[0]
    vectors, bias = (np.asarray(weight) for weight in model.get_layer("vectors").weights)
    return hidden @ vectors.T + bias


def keras_log_probs(model: keras.Model, ids: np.ndarray) -> np.ndarray:
    logs = log_softmax(keras_logits(model, np.insert(ids, 0, PAD_ID)))
    return logs[np.arange(len(logs)), np.append(ids, PAD_ID)]


def test_numpy_equals_keras(model, network):
    several = sequences([0, 1, 2, 7, 30])
    for found, ids in zip(network.log_probs(several), several, strict=True):
        np.testing.assert_allclose(found, keras_log_probs(model, ids), atol=2e-5)


def test_hypotheses_share_what_follows_equal_hanzi(network):
    (best,) = sequences([12])
    other, apart = best.copy(), best[::-1].copy()
    other[2] = PAD_ID + 2 if best[2] != PAD_ID + 2 else PAD_ID + 3
    history = 3
    shared = network.log_probs_of_hypotheses([[best, other, apart], [other]], history)
    exact = network.log_probs_of_hypotheses([[best, other, apart], [other]], shared_history=None)
    for hypothesis in (0, 2):  # nothing before them that they could share
        np.testing.assert_allclose(shared[0][hypothesis], exact[0][hypothesis], atol=1e-5)
    np.testing.assert_allclose(shared[1][0], exact[0][1], atol=1e-5)
    start = 2 + history  # as many hanzi after the difference
    np.testing.assert_allclose(shared[0][1][:start], exact[0][1][:start], atol=1e-5)
    np.testing.assert_allclose(shared[0][1][start + 1 :], exact[0][0][start + 1 :], atol=1e-5)
    assert np.abs(shared[0][1] - exact[0][1]).max() > 1e-6


def test_the_softmax_has_the_frequent_hanzi_and_the_rated_one(model):
    frequent = np.arange(0, SIZE, 2)
    (ids,) = sequences([9])
    (found,) = NumpyCausalCnn(numpy_weights(model, frequent)).log_probs([ids])
    logits, following = keras_logits(model, np.insert(ids, 0, PAD_ID)), np.append(ids, PAD_ID)
    assert {0, 1} == set(following % 2), "both kinds are rated"
    for row, token, log_prob in zip(logits, following, found, strict=True):
        normaliser = np.logaddexp.reduce(row[np.union1d(frequent, [token])])
        assert log_prob == pytest.approx(row[token] - normaliser, abs=2e-5)


def test_a_sample_of_all_hanzi_gives_the_full_softmax(model):
    rows = np.stack(sequences([6, 6], seed=1)).astype(np.int32)
    rows[1, 4:] = 0  # ids plus 1: the row ends here
    negatives = np.tile(np.arange(1, SIZE + 1, dtype=np.int32), (2, 1))
    equal = np.full(SIZE, -np.log(SIZE), np.float32)
    found = np.asarray(sampled_losses(model, rows, negatives, equal))
    for row, loss, length in zip(rows, found, (6, 4), strict=True):
        ids = row[:length] - 1
        logs = log_softmax(keras_logits(model, ids[:-1]))
        assert loss == pytest.approx(-logs[np.arange(length - 1), ids[1:]].mean(), rel=1e-4)


def test_the_file_has_a_byte_for_each_weight(network, model, tmp_path):
    weights = numpy_weights(model)
    weights.save(tmp_path / "hanzi_model.npz")
    loaded = CausalCnnWeights.load(tmp_path / "hanzi_model.npz")
    assert loaded.dilations.tolist() == [1, 1, 2, 3]
    scale = np.abs(weights.kernels).max(axis=-1, keepdims=True) / 127
    assert (np.abs(loaded.kernels - weights.kernels) <= scale * 0.6).all()
    several = sequences([5, 9])
    for exact, rounded in zip(
        network.log_probs(several), NumpyCausalCnn(loaded).log_probs(several), strict=True
    ):
        np.testing.assert_allclose(rounded, exact, atol=0.3)


# --- training -------------------------------------------------------------------------------------------

LINES = ["数学公式", "发动攻势", "公事公办", "今天天气很好", "我们学数学"]
TINY = (
    "model.name=causal_cnn",
    "model.width=24",
    "model.dilations=[1,2]",
    "model.rows.steps=60",
    "model.rows.negatives=8",
    "data.batch_syllables=512",
    "data.batch_sentences=32",
    "optimiser.learning_rate=0.02",
    "training.epochs=2",
)


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("text") / "lines.txt"
    path.write_text("".join(f"{line}\n" for line in LINES * 40), encoding="utf-8")
    return path


def arguments(text: Path) -> list[str]:
    return [*TINY, f"data.train=[{text}]", f"data.dev=[{text}]", f"data.cache={text.parent / 'cache'}"]


@pytest.fixture(scope="module")
def run(text, tmp_path_factory) -> RunFolder:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "recipe.yaml").write_text("task: language\n", encoding="utf-8")
    train_from_config("language", folder / "recipe.yaml", arguments(text), folder / "run")
    return RunFolder(folder / "run")


def test_a_tiny_language_is_learnt(run):
    best = json.loads(run.metrics.read_text(encoding="utf-8"))["best"]
    # A line's first hanzi and those after 公 are open, all others are certain.
    assert best["dev_perplexity"] < 2.0 and best["dev_loss"] == pytest.approx(np.log(best["dev_perplexity"]))
    language_model = load_language_model(run.path)
    known, wrong, unknown = language_model.log_probs(["发动攻势", "发动公式", "发动龘式"])
    assert known.shape == (5,) and known.sum() > wrong.sum() + 1 > unknown.sum()


@pytest.mark.parametrize("name", ["hanzi_model.npz", "vocabulary/hanzi.txt"])
def test_a_missing_part_is_named(run, name):
    path = run.path / name
    content = path.read_bytes()
    path.unlink()
    try:
        with pytest.raises(RunError, match=f"the run folder has no {name}"):
            load_language_model(run.path)
    finally:
        path.write_bytes(content)


def hanzi_batches(text: Path, joined: float, size: int = 16) -> tuple[HanziBatches, Vocabulary]:
    dataset = prepare_pairs([str(text)], text.parent / "cache", seed=0)
    vocabulary = language_vocabulary(sorted(set("".join(LINES))))
    rows = text_rows(dataset, vocabulary, length=12, size=size)
    frequencies = np.linspace(1, 2, len(vocabulary)) / np.linspace(1, 2, len(vocabulary)).sum()
    config = TextRowsConfig(joined=joined, negatives=200)
    return HanziBatches(rows, frequencies, config, seed=3), vocabulary


def test_rows_are_pieces_of_the_text(text):
    batches, vocabulary = hanzi_batches(text, joined=0.0)
    written = "".join(f"{line}\n" for line in LINES * 40)
    for row in batches.batch(2).hanzi:
        inside = row[row > 0] - 1
        assert "".join("\n" if i == PAD_ID else vocabulary.tokens[i] for i in inside) in f"\n{written}\n\n"
    joined = hanzi_batches(text, joined=0.999)[0].batch(2)
    assert (joined.hanzi == PAD_ID + 1).mean() < 0.02 and (joined.hanzi[:, -1] == 0).any()


def test_batches_are_the_same_again_and_shards_divide_them(text):
    batch, again, half = (hanzi_batches(text, 0.4)[0].batch(5, shard) for shard in ((0, 1), (0, 1), (1, 2)))
    np.testing.assert_array_equal(batch.hanzi, again.hanzi)
    np.testing.assert_array_equal(half.hanzi, batch.hanzi[1::2])
    np.testing.assert_array_equal(half.negatives, batch.negatives[1::2])
    assert half.ids == batch.ids and len(half.hanzi) == 8


def test_each_text_has_its_share_of_a_batch(text, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("三" * 12 + "\n", encoding="utf-8")
    dataset = prepare_pairs([str(text), str(other)], tmp_path / "cache", seed=0)
    vocabulary = language_vocabulary(sorted({*"".join(LINES), "三"}))
    flat = np.full(len(vocabulary), 1 / len(vocabulary))
    rows = text_rows(dataset, vocabulary, length=6, size=10, shares=(0.7, 0.3))
    batch = HanziBatches(rows, flat, TextRowsConfig(), seed=1).batch(4)
    of_other = (batch.hanzi == vocabulary.index("三") + 1).any(axis=1)
    # The rows at the ends of the short text may hold no more than its end.
    assert not of_other[:7].any() and of_other[7:].any() and len(batch.ids) == 10
    with pytest.raises(ConfigError, match="has 1 fractions"):
        text_rows(dataset, vocabulary, length=6, size=10, shares=(1.0,))
    with pytest.raises(ConfigError, match="add up to"):
        TextRowsConfig(shares=(0.5, 0.4))


def test_a_trained_model_goes_on_with_another_text(run, tmp_path):
    text = tmp_path / "more.txt"
    text.write_text("".join(f"{line}\n" for line in ["三角函数", "今天天气很冷"] * 40), encoding="utf-8")
    (tmp_path / "recipe.yaml").write_text("task: language\n", encoding="utf-8")
    short = ["model.rows.steps=1", "training.epochs=1", "optimiser.learning_rate=1e-6"]
    overrides = [*arguments(text), *short, f"initialise_from={run.path}"]
    train_from_config("language", tmp_path / "recipe.yaml", overrides, tmp_path / "run")
    before, after = (
        load_language_model(path).log_probs(["发动攻势"])[0] for path in (run.path, tmp_path / "run")
    )
    np.testing.assert_allclose(after, before, atol=0.5)  # of tokens by name: the vocabularies differ
