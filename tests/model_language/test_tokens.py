"""Tests of token ids of syllables with, without and with unknown tones; limited memory for unknown tokens."""

import pytest

from model_language.vocabulary.symbols import PAD_ID, UNKNOWN_ID, Tokens, build_symbols


@pytest.fixture(scope="module")
def symbols():
    return build_symbols()


def test_tones_none_and_unknown_tokens(symbols):
    tokens = Tokens(symbols)
    ids = tokens.encode([["zhong1", "zhong", "huar3", "", "xyz"], ["a1"]])
    toneless = len(symbols.pinyin) + tokens.toneless.index("zhong")
    assert ids[0].tolist() == [
        symbols.pinyin.index("zhong1"),
        toneless,
        symbols.encode(["huar3"])[0],
        UNKNOWN_ID,
        UNKNOWN_ID,
    ]
    assert ids[1].tolist() == [symbols.pinyin.index("a1"), *[PAD_ID] * 4]
