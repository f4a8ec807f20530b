"""Tests of CBHG: published geometry, masks, training, conversion from the run."""

import csv
import math

import keras
import numpy as np
import pytest

from model_language.converters.neural import NeuralConverter
from model_language.networks.cbhg import CbhgConfig, build_cbhg
from model_language.registry import MODELS, load_converter
from model_language.vocabulary.lexicon import Lexicon
from model_language.vocabulary.symbols import Symbols
from training.run import train_from_config
from utils.errors import ConfigError
from utils.padding import pad_rows
from utils.run_folder.run import RunFolder
from utils.vocabulary import language_vocabulary

TINY = CbhgConfig(embedding=12, width=8, bank=4, projection_kernel=3, highway=1, dropout=0.0)


@pytest.fixture(scope="module")
def symbols() -> Symbols:
    lexicon = Lexicon({"yue4": "月乐", "le4": "乐勒", "yin1": "音因阴", "kuai4": "快块", "de5": "的"})
    return Symbols(language_vocabulary(lexicon.syllables), language_vocabulary(lexicon.hanzi), lexicon)


@pytest.fixture(scope="module")
def model(symbols) -> keras.Model:
    keras.utils.set_random_seed(1)
    model = build_cbhg(TINY, len(symbols.pinyin), len(symbols.hanzi))
    for variable in model.trainable_variables:  # zero biases would hide mistakes
        variable.assign(variable + 0.1 * keras.random.normal(variable.shape))
    return model


def _logits(model: keras.Model, syllables) -> np.ndarray:
    return np.asarray(model({"syllables": np.asarray(syllables, np.int32)}, training=False))


def _by_hand(config: CbhgConfig, pinyin: int, hanzi: int) -> dict[str, int]:
    """Parameters of each part."""
    e, w, k = config.embedding, config.width, config.bank
    return {
        "embedding": pinyin * e,
        "pre-net": (e * e + e) + (e * w + w),
        "bank": w * w * k * (k + 1) // 2 + 2 * k * w,  # kernels of 1 … k, one normalisation
        "projections": config.projection_kernel * (k * w * w + w * w) + 2 * 2 * w,
        "highway": config.highway * 2 * (w * w + w),
        "gru": 2 * 3 * (w * w + w * w + 2 * w),
        "logits": 2 * w * hanzi + hanzi,
    }


@pytest.mark.parametrize("settings", [{}, {"embedding": 256, "width": 128, "projection_kernel": 3}])
def test_parameter_count_of_the_published_sizes(settings):
    """Counts of the reference recipe and of Tacotron's table 1."""
    config = CbhgConfig(**settings)
    assert build_cbhg(config, 1300, 5000).count_params() == sum(_by_hand(config, 1300, 5000).values())


def test_the_defaults_are_the_reference_recipe():
    config = CbhgConfig()
    assert (config.embedding, config.width, config.bank, config.highway) == (300, 150, 16, 4)
    assert MODELS["cbhg"].config is CbhgConfig


def test_layer_shapes_of_the_reference():
    kinds = (keras.layers.Conv1D, keras.layers.MaxPooling1D, keras.layers.Dense, keras.layers.Bidirectional)
    model = build_cbhg(CbhgConfig(bank=3, highway=2), 20, 30)
    found = {layer.name: layer.output.shape[2:] for layer in model.layers if isinstance(layer, kinds)}
    assert found["gru"] == (300,)
    assert list(found.values()).count((450,)) == 1  # the bank, pooled
    assert [found[f"bank_{size}"] for size in (1, 2, 3)] == [(150,)] * 3
    assert [model.get_layer(f"bank_{size}").kernel.shape for size in (1, 2, 3)] == [
        (1, 150, 150),
        (2, 150, 150),
        (3, 150, 150),
    ]
    assert model.get_layer("projection_1").kernel.shape == (5, 450, 150)
    assert found["logits"] == (30,)


@pytest.mark.parametrize(
    "settings", [{"embedding": 0}, {"width": 0}, {"bank": 0}, {"highway": -1}, {"dropout": 1.0}]
)
def test_an_impossible_setting_is_named(settings):
    ((name, value),) = settings.items()
    with pytest.raises(ConfigError, match=rf"model\.{name} is {value}, at least"):
        CbhgConfig(**settings)


def test_padding_has_no_influence(model):
    rows = [np.array([2, 3, 4, 5, 6]), np.array([4, 2]), np.array([6])]
    together = _logits(model, pad_rows(rows, multiple=8))
    for row, logits in zip(rows, together, strict=True):
        np.testing.assert_allclose(logits[: len(row)], _logits(model, row[None])[0], atol=2e-6)


def test_padding_has_no_influence_on_training(model):
    """There are no batch statistics: without dropout, training and inference are the same function."""
    syllables = np.array([[2, 3, 4, 0], [5, 0, 0, 0]], np.int32)
    np.testing.assert_allclose(
        model({"syllables": syllables}, training=True), _logits(model, syllables), atol=1e-6
    )


def test_each_position_sees_the_whole_sentence(model):
    base = _logits(model, [[2, 3, 4, 5, 6, 3, 4]])[0]
    for position in (0, 6):
        changed = np.array([[2, 3, 4, 5, 6, 3, 4]])
        changed[0, position] = 5
        assert (np.abs(base - _logits(model, changed)[0]).max(axis=-1) > 1e-6).all()


def test_a_highway_begins_open():
    """With its gate's first bias a layer passes on most of its input (Srivastava et al. 2015)."""
    gates = [
        layer
        for layer in build_cbhg(TINY, 20, 30).layers
        if isinstance(layer, keras.layers.Dense) and layer.activation is keras.activations.sigmoid
    ]
    assert [gate.get_weights()[1].tolist() for gate in gates] == [[-1.0] * 8]
    assert 1 / (1 + math.exp(1)) == pytest.approx(0.27, abs=0.01)


def test_save_and_load_round_trip(model, tmp_path):
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(_logits(loaded, [[2, 5, 3, 0]]), _logits(model, [[2, 5, 3, 0]]), atol=1e-6)


def test_each_syllable_becomes_one_of_its_hanzi(model, symbols):
    converter = NeuralConverter(model, symbols)
    rng, syllables = np.random.default_rng(3), symbols.lexicon.syllables
    sentences = [[syllables[i] for i in rng.integers(0, len(syllables), n)] for n in (1, 9, 0, 17)]
    texts = converter.convert(sentences)
    assert list(map(len, texts)) == [1, 9, 0, 17]
    for sentence, text in zip(sentences, texts, strict=True):
        assert all(h in symbols.lexicon.candidates(s) for s, h in zip(sentence, text, strict=True))
    assert converter.n_best(sentences[0], 3)[0].hanzi == texts[0]


@pytest.mark.nightly
def test_a_recipe_learns_to_convert_by_context(tmp_path):
    """乐 is yue4 after 音 and le4 after 快; conversion needs only the run folder."""
    text, recipe = tmp_path / "text.txt", tmp_path / "recipe.yaml"
    text.write_text("音乐\n快乐\n我的音乐\n是快乐\n" * 24, encoding="utf-8")
    recipe.write_text("model: {name: cbhg}\n", encoding="utf-8")
    settings = [
        "model.embedding=16",
        "model.width=12",
        "model.bank=3",
        "model.highway=1",
        "model.dropout=0.1",
    ]
    data = [f"data.train=[{text}]", f"data.dev=[{text}]", f"data.cache={tmp_path}", "data.batch_sentences=8"]
    rate = ["optimiser.learning_rate=0.02", "optimiser.schedule=constant", "training.epochs=2"]
    run = RunFolder(tmp_path / "run")
    best = train_from_config("language", recipe, [*settings, *data, *rate], run.path)
    losses = [float(row["train_loss"]) for row in csv.DictReader(run.history.open(encoding="utf-8"))]
    assert losses[-1] < 0.5 * losses[0], losses
    assert best["dev_character_error_rate"] < 0.2
    for path in (text, recipe):
        path.unlink()
    converter = load_converter(run.path)
    assert converter.convert([["yin1", "yue4"], ["kuai4", "le4"]]) == ["音乐", "快乐"]
