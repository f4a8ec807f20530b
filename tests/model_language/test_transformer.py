"""Tests of the transformer: shapes, masks, restricted softmax, loss by hand, conversion."""

import math

import keras
import numpy as np
import pytest

from model_language.converters.neural import NeuralConverter
from model_language.networks.loss import sequence_loss
from model_language.networks.transformer import TransformerConfig, build_transformer
from model_language.vocabulary.lexicon import Lexicon
from model_language.vocabulary.symbols import UNKNOWN_ID, Symbols
from utils.arrays import pad_rows
from utils.errors import ConfigError
from utils.vocabulary import language_vocabulary

TINY = TransformerConfig(width=16, blocks=2, heads=2, reach=4, dropout=0.0)


def _symbols() -> Symbols:
    lexicon = Lexicon({"yue4": "月乐", "le4": "乐勒", "yin1": "音因阴", "kuai4": "快块", "de5": "的"})
    pinyin = language_vocabulary([*lexicon.syllables, "rua1"])
    return Symbols(pinyin, language_vocabulary(lexicon.hanzi), lexicon)


@pytest.fixture(scope="module")
def symbols() -> Symbols:
    return _symbols()


@pytest.fixture(scope="module")
def model(symbols) -> keras.Model:
    keras.utils.set_random_seed(1)
    model = build_transformer(TINY, len(symbols.pinyin), len(symbols.hanzi))
    for variable in model.trainable_variables:  # zero biases would hide mistakes
        variable.assign(variable + 0.1 * keras.random.normal(variable.shape))
    return model


@pytest.fixture(scope="module")
def converter(model, symbols) -> NeuralConverter:
    return NeuralConverter(model, symbols)


def _logits(model: keras.Model, syllables) -> np.ndarray:
    return np.asarray(model({"syllables": np.asarray(syllables, np.int32)}, training=False))


def test_width_must_fit_the_heads():
    with pytest.raises(ConfigError, match=r"model\.width 10 is not a multiple of model\.heads 4"):
        TransformerConfig(width=10, heads=4)


def test_padding_has_no_influence(model):
    rows = [np.array([2, 3, 4, 5, 6]), np.array([4, 2]), np.array([7])]
    together = _logits(model, pad_rows(rows, multiple=8))
    for row, logits in zip(rows, together, strict=True):
        np.testing.assert_allclose(logits[: len(row)], _logits(model, row[None])[0], atol=2e-6)


def test_mixed_precision_gives_float32_logits(symbols):
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        model = build_transformer(TINY, len(symbols.pinyin), len(symbols.hanzi))
    finally:
        keras.mixed_precision.set_global_policy("float32")
    logits = _logits(model, [[2, 3, 0]])
    assert logits.dtype == np.float32 and np.isfinite(logits).all()
    assert model.get_layer("attention_1").compute_dtype == "float16"


# --- the restricted softmax and its loss -----------------------------------------------------------------

CANDIDATES = np.array([[1, 0, 0], [1, 0, 0], [2, 3, 0], [3, 4, 5]], np.int32)  # for the syllables 0 … 3


def test_loss_by_hand():
    """Equal logits: a syllable of 2 candidates costs log 2, one of 3 log 3, whatever other hanzi score."""
    logits = np.zeros((1, 4, 6), np.float32)
    logits[:, :, 1] = 50.0  # no candidate of the first two syllables
    loss, weights = map(
        np.asarray, sequence_loss(logits, np.array([[2, 3, 2, 0]]), np.array([[3, 5, 5, 0]]), CANDIDATES)
    )
    np.testing.assert_allclose(loss, [[math.log(2), math.log(3), 0, 0]], rtol=1e-6)
    np.testing.assert_array_equal(weights, [[1, 1, 0, 0]])  # hanzi 5 is not read as syllable 2; padding


def test_smoothing_stays_within_the_candidates():
    logits = np.array([[[9.0, 9, 1, 2, 9, 9]]], np.float32)
    (loss,), _ = map(np.asarray, sequence_loss(logits, np.array([[2]]), np.array([[2]]), CANDIDATES, 0.1))
    lower, upper = -math.log(1 / (1 + math.e)), -math.log(math.e / (1 + math.e))
    assert loss[0] == pytest.approx(0.95 * lower + 0.05 * upper, rel=1e-5)


def test_an_unknown_target_is_learned_only_from_an_unreadable_syllable():
    loss, weights = map(
        np.asarray,
        sequence_loss(
            np.zeros((1, 2, 6), np.float32), np.array([[1, 2]]), np.full((1, 2), UNKNOWN_ID), CANDIDATES
        ),
    )
    assert (loss == 0).all() and weights.tolist() == [[1, 0]]


# --- conversion ------------------------------------------------------------------------------------------


def test_each_syllable_becomes_one_of_its_hanzi(converter, symbols):
    rng = np.random.default_rng(3)
    syllables = symbols.lexicon.syllables
    sentences = [[syllables[i] for i in rng.integers(0, len(syllables), n)] for n in (1, 9, 0, 17, 3, 300)]
    texts = converter.convert(sentences)
    assert list(map(len, texts)) == list(map(len, sentences))
    for sentence, text in zip(sentences, texts, strict=True):
        assert all(h in symbols.lexicon.candidates(s) for s, h in zip(sentence, text, strict=True))
    assert texts == [converter.convert([sentence])[0] for sentence in sentences]
