"""Tests of the transformer: shapes, masks, restricted softmax, loss by hand, conversion from a run folder."""

import itertools
import math
from dataclasses import replace

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from model_language.converters.neural import NeuralConverter
from model_language.converters.user_word_converter import UserWordConverter
from model_language.networks.loss import candidate_logits, sequence_loss
from model_language.networks.transformer import TransformerConfig, build_transformer
from model_language.registry import load_converter
from model_language.search.user_words import UserWords
from model_language.vocabulary.lexicon import UNREADABLE, Lexicon
from model_language.vocabulary.symbols import UNKNOWN_ID, Symbols
from utils.arrays import pad_rows
from utils.backend.model_cost import multiply_accumulates
from utils.config import save_yaml, to_plain
from utils.errors import ConfigError, RunError
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


@pytest.mark.parametrize("shape", [(1, 1), (2, 7), (1, 300)])
def test_shape_and_finite_values_at_any_length(model, symbols, shape):
    logits = _logits(model, np.random.default_rng(0).integers(1, len(symbols.pinyin), shape))
    assert logits.shape == (*shape, len(symbols.hanzi)) and logits.dtype == np.float32
    assert np.isfinite(logits).all()


def test_parameter_count():
    """A block: four projections, the distance bias, a feed-forward of 4 widths, two normalisations."""
    p, h, w, heads, reach, blocks = 11, 13, 16, 2, 4, 2
    block = 4 * (w * w + w) + heads * (2 * reach + 1) + (w * 4 * w + 4 * w) + (4 * w * w + w) + 2 * 2 * w
    assert build_transformer(TINY, p, h).count_params() == p * w + blocks * block + 2 * w + (w * h + h)


def test_multiply_accumulates_by_hand(model, symbols):
    length, w = 9, TINY.width
    attention = 4 * length * w * w + 2 * length * length * w  # four projections, scores, weighted sum
    feed_forward = 2 * length * w * TINY.feed_forward * w
    logits = length * w * len(symbols.hanzi)
    assert multiply_accumulates(model, length) == TINY.blocks * (attention + feed_forward) + logits


def test_width_must_fit_the_heads():
    with pytest.raises(ConfigError, match=r"model\.width 10 is not a multiple of model\.heads 4"):
        TransformerConfig(width=10, heads=4)


def test_padding_has_no_influence(model):
    rows = [np.array([2, 3, 4, 5, 6]), np.array([4, 2]), np.array([7])]
    together = _logits(model, pad_rows(rows, multiple=8))
    for row, logits in zip(rows, together, strict=True):
        np.testing.assert_allclose(logits[: len(row)], _logits(model, row[None])[0], atol=2e-6)


def test_each_position_sees_the_whole_sentence_and_the_order_of_it(model):
    base = _logits(model, [[2, 3, 4, 5, 6, 7]])[0]
    changed = _logits(model, [[2, 3, 4, 5, 6, 2]])[0]
    assert (np.abs(base - changed).max(axis=-1) > 1e-4).all()
    swapped = _logits(model, [[3, 2, 4, 5, 6, 7]])[0]
    assert (np.abs(base - swapped)[2:].max(axis=-1) > 1e-4).all()


def test_attention_weights_are_outputs_of_named_layers(model):
    layers = [model.get_layer(f"attention_{block}").output for block in (1, 2)]
    weights = keras.Model(model.input, layers)({"syllables": np.array([[2, 3, 4, 0, 0]])})
    for found in map(np.asarray, weights):
        assert found.shape == (1, 2, 5, 5)
        np.testing.assert_allclose(found.sum(axis=-1), 1, rtol=1e-5)
        assert not found[..., 3:].any()  # padding gets no attention
        assert not np.allclose(found, found[..., :1])


def test_mixed_precision_gives_float32_logits(symbols):
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        model = build_transformer(TINY, len(symbols.pinyin), len(symbols.hanzi))
    finally:
        keras.mixed_precision.set_global_policy("float32")
    logits = _logits(model, [[2, 3, 0]])
    assert logits.dtype == np.float32 and np.isfinite(logits).all()
    assert model.get_layer("attention_1").compute_dtype == "float16"


def test_save_and_load_round_trip(model, tmp_path):
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    syllables = [[2, 5, 3, 0]]
    np.testing.assert_array_equal(_logits(loaded, syllables), _logits(model, syllables))


# --- the restricted softmax and its loss -----------------------------------------------------------------

CANDIDATES = np.array([[1, 0, 0], [1, 0, 0], [2, 3, 0], [3, 4, 5]], np.int32)  # for the syllables 0 … 3


def test_candidate_logits_picks_the_right_cells():
    logits = np.random.default_rng(0).normal(size=(2, 3, 6)).astype(np.float32)
    syllables = np.array([[2, 3, 0], [1, 2, 3]])
    picked, rows = map(np.asarray, candidate_logits(ops.convert_to_tensor(logits), syllables, CANDIDATES))
    np.testing.assert_array_equal(rows, CANDIDATES[syllables])
    for index in np.ndindex(2, 3, 3):
        if rows[index]:
            assert picked[index] == logits[index[0], index[1], rows[index]]
        else:
            assert picked[index] < -1e8


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


def test_unknown_syllables_degrade_gracefully(converter):
    text = converter.convert([["de5", "hello", "rua1", "der5", " "]])[0]
    assert text == f"的{UNREADABLE}{UNREADABLE}的{UNREADABLE}"


def n_best(converter, sentence, n):
    return UserWordConverter(converter, UserWords()).explain([sentence], n, reasons=False)[0].n_best


def test_n_best_equals_brute_force(converter, model, symbols):
    sentence = ["yin1", "yue4", "kuai4", "le4"]
    ids = symbols.encode(sentence)
    logits = _logits(model, ids[None])[0]
    options = []
    for position, row in enumerate(symbols.candidates[ids]):
        kept = row[row > 0]
        log_probs = logits[position, kept] - np.log(np.exp(logits[position, kept]).sum())
        options.append(list(zip(kept, log_probs, strict=True)))
    every = sorted(
        (
            (sum(p for _, p in choice), symbols.decode(c for c, _ in choice))
            for choice in itertools.product(*options)
        ),
        reverse=True,
    )
    found = n_best(converter, sentence, 7)
    assert [conversion.hanzi for conversion in found] == [text for _, text in every[:7]]
    np.testing.assert_allclose([c.score for c in found], [score for score, _ in every[:7]], atol=1e-5)
    assert found[0].hanzi == converter.convert([sentence])[0]
    assert sum(math.exp(c.score) for c in n_best(converter, sentence, 100)) == pytest.approx(1, rel=1e-4)


def test_the_network_learns_to_convert_by_context(symbols):
    """乐 is yue4 after 音 and le4 after 快; 月 and 勒 occur elsewhere: 40 steps are enough to learn it."""
    pairs = [("yin1 yue4", "音乐"), ("kuai4 le4", "快乐"), ("de5 yue4", "的月"), ("de5 le4", "的勒")]
    encoded = [symbols.encode_pair(pinyin.split(), hanzi) for pinyin, hanzi in pairs]
    syllables, targets = (pad_rows(side) for side in zip(*encoded, strict=True))
    keras.utils.set_random_seed(2)
    model = build_transformer(replace(TINY, blocks=1), len(symbols.pinyin), len(symbols.hanzi))

    optimizer = keras.optimizers.Adam(0.02)
    optimizer.build(model.trainable_variables)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            logits = model({"syllables": syllables}, training=True)
            loss, weights = sequence_loss(logits, syllables, targets, symbols.candidates, 0.1)
            mean = ops.sum(loss) / ops.sum(weights)
        optimizer.apply(tape.gradient(mean, model.trainable_variables), model.trainable_variables)

    for _ in range(40):
        step()
    texts = NeuralConverter(model, symbols).convert([pinyin.split() for pinyin, _ in pairs])
    assert texts == [hanzi for _, hanzi in pairs]


def test_a_run_folder_is_all_that_conversion_needs(model, symbols, converter, tmp_path):
    run = tmp_path / "run"
    save_yaml(run / "config.yaml", {"task": "language", "model": to_plain(TINY)})
    symbols.save(run)
    with pytest.raises(RunError, match="has no best"):
        load_converter(run)
    model.save_weights(run / "best.weights.h5")
    moved = run.rename(tmp_path / "elsewhere")
    sentence = ["yin1", "yue4", "kuai4", "le4"]
    assert n_best(load_converter(moved), sentence, 3) == n_best(converter, sentence, 3)
    save_yaml(moved / "config.yaml", {"task": "language", "model": {**to_plain(TINY), "width": 32}})
    with pytest.raises(RunError, match="another model than config"):
        load_converter(moved)
    save_yaml(moved / "config.yaml", {"task": "speech"})
    with pytest.raises(RunError, match="speech"):
        load_converter(moved)
