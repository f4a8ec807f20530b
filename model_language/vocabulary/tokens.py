"""Syllables with and without tone in; their tokens in the shipped converter's tables and network, out.

The tokens are the syllables of the vocabulary and then, sorted, the same without their tones.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from model_language.search.grid import pad_rows
from model_language.vocabulary.symbols import Symbols
from utils.mandarin.pinyin import has_tone

# Unknown tokens whose ids are remembered, and the letters of the longest: at most about 1 MB.
_UNKNOWN_KEPT, _LONGEST_KEPT = 4096, 32


def toneless_tokens(symbols: Symbols) -> list[str]:
    """The syllables without their tones, in the order of their tokens: ``len(symbols.pinyin)`` and on."""
    return sorted({token[:-1] for token in symbols.pinyin.tokens if has_tone(token)})


class TokenIds:
    """Looks tokens up; one that is neither is taken as :meth:`Symbols.encode` takes it, so it never fails.

    Args:
        symbols: vocabularies and lexicon.
    """

    def __init__(self, symbols: Symbols):
        self._symbols = symbols
        tokens = (*symbols.pinyin.tokens, *toneless_tokens(symbols))
        self._ids = {token: number for number, token in enumerate(tokens)}
        self._remembered = lru_cache(maxsize=_UNKNOWN_KEPT)(self._unknown)

    def encode(self, sentences: Sequence[Sequence[str]]) -> np.ndarray:
        """(B, L) int32, filled with 0."""
        return pad_rows([self._encode(sentence) for sentence in sentences])

    def _encode(self, sentence: Sequence[str]) -> np.ndarray:
        ids = self._ids
        return np.array(
            [ids[syllable] if syllable in ids else self._other(syllable) for syllable in sentence], np.int32
        )

    def _other(self, syllable: str) -> int:
        return (self._remembered if len(syllable) <= _LONGEST_KEPT else self._unknown)(syllable)

    def _unknown(self, syllable: str) -> int:
        return int(self._symbols.encode([syllable])[0])
