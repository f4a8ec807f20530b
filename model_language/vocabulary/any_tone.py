"""A counted model's tables by tonal syllable → the same with a row for each syllable whose tone isn't known.

What may become of ``zhong`` is what may become of ``zhong1`` … ``zhong5``, and P(zhong | hanzi) is the sum of
P(zhong1 | hanzi) … P(zhong5 | hanzi): a hanzi is read with one of its tones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from model_language.vocabulary.symbols import PAD_ID, Symbols
from utils.mandarin.pinyin import has_tone


class ToneTables:
    """Candidates and readings by syllable id; ids beyond the vocabulary are syllables in any tone.

    Args:
        symbols: vocabularies and lexicon.
        readings: log P(syllable | hanzi) beside ``symbols.candidates``, (pinyin, K), -inf where empty.

    Attributes:
        candidates: (pinyin + bases, K') int32, filled with 0.
        readings: (pinyin + bases, K') float32, -inf where empty.
    """

    def __init__(self, symbols: Symbols, readings: np.ndarray):
        self._symbols = symbols
        groups: dict[str, list[int]] = {}
        for number, token in enumerate(symbols.pinyin.tokens):
            if has_tone(token):
                groups.setdefault(token[:-1], []).append(number)
        bases = sorted(base for base in groups if base not in symbols.pinyin)
        self._ids = {base: len(symbols.pinyin) + place for place, base in enumerate(bases)}
        rows = [_sums(symbols.candidates[groups[base]], readings[groups[base]]) for base in bases]
        widest = max([symbols.candidates.shape[1], *(len(ids) for ids, _ in rows)])
        size = (len(symbols.pinyin) + len(rows), widest)
        self.candidates = np.full(size, PAD_ID, np.int32)
        self.readings = np.full(size, -np.inf, np.float32)
        self.candidates[: len(readings), : readings.shape[1]] = symbols.candidates
        self.readings[: len(readings), : readings.shape[1]] = readings
        for place, (ids, logs) in enumerate(rows, start=len(symbols.pinyin)):
            self.candidates[place, : len(ids)] = ids
            self.readings[place, : len(ids)] = logs

    def encode(self, syllables: Sequence[str]) -> np.ndarray:
        """Ids of syllables, with and without tones, (len(syllables),) int32; never fails."""
        ids = self._symbols.encode(syllables)
        for place, syllable in enumerate(syllables):
            if syllable in self._ids:
                ids[place] = self._ids[syllable]
        return ids


def _sums(candidates: np.ndarray, readings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct hanzi of some rows, sorted, and log of their summed probabilities."""
    used = readings > -np.inf
    ids, place = np.unique(candidates[used], return_inverse=True)
    return ids, np.log(np.bincount(place, np.exp(readings[used].astype(np.float64)), minlength=len(ids)))
