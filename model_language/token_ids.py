"""Syllables with and without tone in; their tokens in the shipped converter's tables and network, out.

The tokens are the syllables of the vocabulary and then, sorted, the same without their tones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from model_language.decoding import pad_rows
from model_language.symbols import Symbols


def toneless_tokens(symbols: Symbols) -> list[str]:
    """The syllables without their tones, in the order of their tokens: ``len(symbols.pinyin)`` and on."""
    return sorted({token[:-1] for token in symbols.pinyin.tokens if token[-1].isdigit()})


class TokenIds:
    """Looks tokens up; one that is neither is taken as :meth:`Symbols.encode` takes it, so it never fails.

    Args:
        symbols: vocabularies and lexicon.
    """

    def __init__(self, symbols: Symbols):
        self._symbols = symbols
        self._ids = {base: len(symbols.pinyin) + i for i, base in enumerate(toneless_tokens(symbols))}

    def encode(self, sentences: Sequence[Sequence[str]]) -> np.ndarray:
        """(B, L) int32, filled with 0."""
        return pad_rows([self._encode(sentence) for sentence in sentences])

    def _encode(self, sentence: Sequence[str]) -> np.ndarray:
        ids = self._ids
        for syllable in sentence:
            if syllable not in ids:
                ids[syllable] = int(self._symbols.encode([syllable])[0])
        return np.array([ids[syllable] for syllable in sentence], np.int32)
