"""Tests of token ids of syllables with, without and with unknown tones; limited memory for unknown tokens."""

import tracemalloc

import pytest

from model_language.vocabulary.symbols import PAD_ID, UNKNOWN_ID, build_symbols
from model_language.vocabulary.tokens import Tokens


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


def test_memory_of_a_long_lived_process_is_bounded(symbols, nightly):
    """Many different unknown tokens, and one of a megabyte, need no more memory than 6,000."""
    tokens = Tokens(symbols)

    def grown(numbers: range) -> int:
        before, _ = tracemalloc.get_traced_memory()
        for number in numbers:
            tokens.encode([[f"token{number}"]])
        return tracemalloc.get_traced_memory()[0] - before

    tracemalloc.start()
    try:
        first = grown(range(6_000))
        tokens.encode([["x" * 1_000_000]])
        later = grown(range(6_000, 60_000 if nightly else 16_000))
    finally:
        tracemalloc.stop()
    assert first < 2_000_000
    assert later < 200_000
