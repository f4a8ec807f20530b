"""Counted readings and an acoustic model's confusions in; what a syllable that was heard may stand for, out.

P(heard | hanzi) = Σ over the hanzi's readings of P(reading | hanzi) · P(heard | reading), where a reading is
heard right with the probability 1 − error rate, else as the acoustic model confuses it. Of the two ways only
the likelier one is kept, and without the error rate: it isn't the same for all sentences. A heard syllable
without a tone is any of its five. The candidates of each are those hanzi that a network rates, then the most
probable others by P(heard | hanzi) · P(hanzi), then what is left of the lexicon's.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from model_language.vocabulary.symbols import PAD_ID, UNKNOWN_ID, Symbols
from utils import files
from utils.errors import RunError
from utils.files import replacing
from utils.mandarin.pinyin import has_tone

HEARD_FILE = "heard.npz"
_RARE = -20.0  # log-probability of what should not be possible, but is a candidate
_UNSEEN = 0.1  # added to the count of each reading that the lexicon has
_USUAL_ERRORS = 0.02  # the error rate by which candidates are chosen


@dataclass(frozen=True)
class HeardTables:
    """What a heard token may stand for; tokens are syllables, then syllables in any tone, sorted.

    Attributes:
        candidates: (tokens, C), hanzi ids, rows filled with 0; used as a whole by guided searches.
        heard: (tokens, C), log P(token | hanzi, said and heard right), or, where ``misheard``, log
            P(token | hanzi, misheard); -inf where there is none.
        misheard: (tokens, C) bool, where it takes a mistake to hear the token for the hanzi.
        shares: (tokens, C), log P(hanzi | token), whatever stands beside; -inf where there is none.
        searched: how many of the C columns a plain search looks at.
    """

    candidates: np.ndarray
    heard: np.ndarray
    misheard: np.ndarray
    shares: np.ndarray
    searched: int

    def log_probs(self, error_rate: float) -> np.ndarray:
        """log P(token | hanzi), (tokens, C) float32, if such a share of the syllables is misheard."""
        ways = np.log([1 - error_rate, error_rate]).astype(np.float32)
        return self.heard + ways[self.misheard.astype(np.int8)]

    def without_mistakes(self, symbols: Symbols, rated: int) -> HeardTables:
        """The tables for syllables that are certain: the only candidates are hanzi that are read so.

        A syllable that no hanzi is read as keeps ``<unk>`` alone.

        Args:
            symbols: vocabularies and lexicon.
            rated: the first so many columns belong to a network and stay where they are, 0 where a candidate
                is left out; behind them the rest moves up.
        """
        readable = np.zeros((len(self.candidates), len(symbols.hanzi)), bool)
        for row, hanzi in zip(readable, _lexicon_rows(symbols, _tones_of_bases(symbols)), strict=True):
            row[hanzi[hanzi > UNKNOWN_ID]] = True
        kept = np.take_along_axis(readable, self.candidates, axis=1)
        columns = np.arange(kept.shape[1])
        order = np.argsort(~kept & (columns >= rated), axis=1, kind="stable")
        # Where a mistake was likelier than a rare reading, its probability is the reading's upper bound.
        lost = np.float32(np.log(_USUAL_ERRORS / (1 - _USUAL_ERRORS)))
        heard = self.heard + lost * self.misheard
        candidates, heard, shares = (
            np.take_along_axis(np.where(kept, table, empty), order, axis=1)
            for table, empty in ((self.candidates, PAD_ID), (heard, -np.inf), (self.shares, -np.inf))
        )
        unwritable = ~kept.any(axis=1)
        unwritable[PAD_ID] = False
        candidates[unwritable, 0], heard[unwritable, 0], shares[unwritable, 0] = UNKNOWN_ID, 0.0, 0.0
        return HeardTables(candidates, heard, np.zeros_like(kept), shares, self.searched)

    def save(self, path: str | Path) -> None:
        """Write one ``.npz`` file, logs in half precision."""
        with replacing(path) as temporary:
            np.savez_compressed(
                temporary,
                candidates=self.candidates.astype(np.uint16),
                heard=self.heard.astype(np.float16),
                misheard=self.misheard,
                shares=self.shares.astype(np.float16),
                searched=self.searched,
            )

    @classmethod
    def load(cls, path: str | Path) -> HeardTables:
        """Read what :meth:`save` wrote.

        Raises:
            RunError: the file is missing or damaged.
        """
        try:
            arrays = files.read_arrays(path)
            if missing := {field.name for field in fields(cls)} - arrays.keys():
                raise ValueError(f"no {min(missing)}")
        except (OSError, ValueError) as error:
            raise RunError(
                f"can't read the candidates ({error})", where=path, hint="copy the run again"
            ) from error
        return cls(
            candidates=arrays["candidates"].astype(np.int32),
            heard=arrays["heard"].astype(np.float32),
            misheard=arrays["misheard"].astype(bool),
            shares=arrays["shares"].astype(np.float32),
            searched=int(arrays["searched"]),
        )


def build_heard(
    symbols: Symbols,
    counts: np.ndarray,
    rated: np.ndarray,
    confused: np.ndarray,
    others: int,
) -> HeardTables:
    """Build the tables.

    Args:
        symbols: vocabularies and lexicon.
        counts: (pinyin, hanzi), how often a hanzi is read so in the training text.
        rated: (tokens, K), the candidates that a network rates; they stay the first.
        confused: (pinyin, pinyin), P(heard | said, misheard), see
            :func:`model_language.networks.candidates.heard_as`.
        others: candidates beyond the network's that a plain search looks at.
    """
    counts = counts.astype(np.float32)
    counts[:, [PAD_ID, UNKNOWN_ID]] = 0
    rows, columns = np.nonzero(symbols.candidates > UNKNOWN_ID)
    counts[rows, symbols.candidates[rows, columns]] += _UNSEEN
    frequency = counts.sum(axis=0)  # (hanzi,)
    read = counts / np.maximum(frequency, _UNSEEN)  # P(said | hanzi), (pinyin, hanzi)
    bases = _tones_of_bases(symbols)
    right, wrong = (_with_bases(one, bases) for one in (read, confused.T @ read))  # (tokens, hanzi) each
    ways = np.stack([(1 - _USUAL_ERRORS) * right, _USUAL_ERRORS * wrong])
    heard = ways.max(axis=0)
    chosen = [
        _chosen(row, own, heard[token] * frequency, others)
        for token, (row, own) in enumerate(zip(rated, _lexicon_rows(symbols, bases), strict=True))
    ]
    width = max(map(len, chosen))
    candidates = np.stack([np.pad(row, (0, width - len(row))) for row in chosen])
    tokens = np.arange(len(chosen))[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = heard * frequency
        shares = np.log(weights[tokens, candidates] / weights.sum(axis=1, keepdims=True))
        misheard = ways[1, tokens, candidates] > ways[0, tokens, candidates]
        logs = np.log(np.where(misheard, wrong[tokens, candidates], right[tokens, candidates]))
    empty = candidates == PAD_ID
    logs, shares = (
        np.where(empty, -np.inf, np.nan_to_num(one, nan=_RARE, neginf=_RARE)) for one in (logs, shares)
    )
    return HeardTables(candidates, logs, misheard, shares, rated.shape[1] + others)


def _with_bases(table: np.ndarray, bases: list[np.ndarray]) -> np.ndarray:
    """(pinyin, hanzi) → (tokens, hanzi): behind the syllables those without tone, sums over their tones."""
    return np.concatenate([table, np.stack([table[members].sum(axis=0) for members in bases])])


def _chosen(rated: np.ndarray, lexicon: np.ndarray, weights: np.ndarray, others: int) -> np.ndarray:
    """Hanzi ids in the order of the module's first lines; places of the rated ones that are empty stay."""
    left = weights.copy()
    left[rated] = 0
    more = np.argsort(-left, kind="stable")[:others]
    more = np.where(left[more] > 0, more, PAD_ID)
    rest = np.setdiff1d(lexicon[lexicon > PAD_ID], np.concatenate([rated, more]))
    return np.concatenate([rated, more, rest]).astype(np.int32)


def _lexicon_rows(symbols: Symbols, bases: list[np.ndarray]) -> list[np.ndarray]:
    """Of each token the ids of the hanzi that the lexicon has for it."""
    return [*symbols.candidates, *(np.unique(symbols.candidates[members]) for members in bases)]


def _tones_of_bases(symbols: Symbols) -> list[np.ndarray]:
    """Of each syllable without tone, sorted, the ids of it with one."""
    members: dict[str, list[int]] = {}
    for number, token in enumerate(symbols.pinyin.tokens):
        if has_tone(token):
            members.setdefault(token[:-1], []).append(number)
    return [np.array(members[base]) for base in sorted(members)]
