"""Tests of CBHG: published geometry, masks, saved models."""

import keras
import numpy as np
import pytest

from model_language.networks.cbhg import CbhgConfig, build_cbhg
from model_language.vocabulary.lexicon import Lexicon
from model_language.vocabulary.symbols import Symbols
from utils.arrays import pad_rows
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


def test_padding_has_no_influence(model):
    rows = [np.array([2, 3, 4, 5, 6]), np.array([4, 2]), np.array([6])]
    together = _logits(model, pad_rows(rows, multiple=8))
    for row, logits in zip(rows, together, strict=True):
        np.testing.assert_allclose(logits[: len(row)], _logits(model, row[None])[0], atol=2e-6)
