"""Extends the syllables of a vocabulary by the same syllables without tones: token ids, and tables by token.

The tokens are the syllables of the vocabulary, followed by the same syllables without tones, sorted. A
toneless syllable stands for the same syllable in any tone: what ``zhong`` may become is what ``zhong1`` …
``zhong5`` may become, and P(zhong | hanzi) is the sum of P(zhong1 | hanzi) … P(zhong5 | hanzi).
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from model_language.vocabulary.symbols import PAD_ID, Symbols
from utils.mandarin.pinyin import has_tone
from utils.padding import pad_rows


class Tokens:
    """The tokens of a vocabulary.

    Args:
        symbols: vocabularies and lexicon.

    Attributes:
        toneless: the syllables without tones, in the order of their tokens, from ``len(symbols.pinyin)`` on.
        members: for each toneless syllable, the ids of the same syllable with a tone.
    """

    def __init__(self, symbols: Symbols):
        self._symbols = symbols
        groups: dict[str, list[int]] = {}
        for number, token in enumerate(symbols.pinyin.tokens):
            if has_tone(token):
                groups.setdefault(token[:-1], []).append(number)
        self.toneless = sorted(groups)
        self.members = [np.array(groups[base]) for base in self.toneless]
        tokens = (*symbols.pinyin.tokens, *self.toneless)
        self._ids = {token: number for number, token in enumerate(tokens)}

    def __len__(self) -> int:
        return len(self._symbols.pinyin) + len(self.toneless)

    def encode(self, sentences: Sequence[Sequence[str]]) -> np.ndarray:
        """Token ids, (B, L) int32, filled with 0; unknown syllables as :meth:`Symbols.encode` takes them."""
        return pad_rows([self._encode(sentence) for sentence in sentences])

    @cached_property
    def bases(self) -> np.ndarray:
        """(tokens,) int32: the index in ``toneless`` of each token without its tone; others have the last."""
        bases = np.full(len(self), len(self.toneless), np.int32)
        bases[len(self._symbols.pinyin) :] = np.arange(len(self.toneless))
        for base, members in enumerate(self.members):
            bases[members] = base
        return bases

    def with_sums(self, table: np.ndarray) -> np.ndarray:
        """A table (pinyin, n) with the sum of its tones added for each toneless syllable: (tokens, n)."""
        return np.concatenate([table, np.stack([table[members].sum(axis=0) for members in self.members])])

    def lexicon_rows(self) -> list[np.ndarray]:
        """Of each token, the ids (n,) int of the hanzi that the lexicon has for it; 0 may be among them."""
        candidates = self._symbols.candidates
        return [*candidates, *(np.unique(candidates[members]) for members in self.members)]

    def with_readings(self, readings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Candidates and readings of all tokens.

        Args:
            readings: log P(syllable | hanzi) of ``symbols.candidates``, (pinyin, K), -inf in empty columns.

        Returns:
            Hanzi ids (tokens, K') int32, filled with 0, and their log-probabilities (tokens, K') float32,
            -inf in empty columns.
        """
        table = self._symbols.candidates
        sums = [_sum_readings(table[members], readings[members]) for members in self.members]
        candidates = pad_rows([*table, *(ids for ids, _ in sums)], fill=PAD_ID)
        logs = pad_rows([*readings, *(values for _, values in sums)], fill=-np.inf, dtype=np.float32)
        return candidates, logs

    def _encode(self, sentence: Sequence[str]) -> np.ndarray:
        ids = self._ids
        return np.array(
            [ids[syllable] if syllable in ids else self._unknown(syllable) for syllable in sentence], np.int32
        )

    def _unknown(self, syllable: str) -> int:
        return int(self._symbols.encode([syllable])[0])


def _sum_readings(candidates: np.ndarray, readings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct hanzi of some rows, sorted, and the logs of their summed probabilities."""
    used = readings > -np.inf
    ids, column = np.unique(candidates[used], return_inverse=True)
    return ids, np.log(np.bincount(column, np.exp(readings[used].astype(np.float64)), minlength=len(ids)))
