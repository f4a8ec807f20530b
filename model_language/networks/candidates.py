"""Chooses the candidate hanzi that the gated CNN scores for a syllable, from counts and acoustic confusions.

A tonal syllable may become one of its most frequent hanzi, or a hanzi whose syllable the acoustic model
confuses with it. A toneless syllable may become one of its most frequent hanzi in any tone. The network does
not score rarer hanzi. Tokens are those of :class:`model_language.vocabulary.symbols.Tokens`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from model_language.array_files import load_part, save_arrays
from model_language.vocabulary.symbols import PAD_ID, UNKNOWN_ID, Symbols, Tokens
from utils.arrays import pad_rows
from utils.mandarin.confusion_statistics import (
    ConfusionStatistics,
    cumulative,
    is_canonical,
    shipped_statistics,
)
from utils.mandarin.pinyin import full_inventory

if TYPE_CHECKING:
    from scipy.sparse import csr_array

TABLES_FILE = "context.npz"
"""Name in the run's vocabulary folder."""

_OWN_FRACTION = 2 / 3  # fraction of a tonal syllable's candidates reserved for hanzi with this reading
_ERROR_RATE = 0.1  # assumed rate of recognition errors, to choose the other candidates
_DRAWS = 64  # equally probable confusions that are stored for each syllable, for training to draw from
_UNSEEN = 0.1  # added to the count of every candidate
# A hanzi that the network does not score gets the lowest prior of those that it scores, minus this.
_RARE_PENALTY = 2.0


@dataclass(frozen=True)
class CandidateTables:
    """The candidate hanzi of a network's input tokens, and the corruptions of these tokens in training.

    Attributes:
        candidates: (tokens, K) int32, hanzi ids, 0 in empty columns; only the row of padding is empty.
        priors: (tokens, K) float32, logs of their counts, 0 for the most frequent; -inf in empty columns.
        rare: (tokens, R) int32, further hanzi with this reading, 0 in empty columns.
        bases: (tokens,) int32, equal for the same syllable with another tone or none.
        toneless: (tokens,) int32, the token of the same syllable without a tone; other tokens themselves.
        confusions: (syllables, draws) int32, equally probable recognition errors of each syllable; 0 if none
            are known.
    """

    candidates: np.ndarray
    priors: np.ndarray
    rare: np.ndarray
    bases: np.ndarray
    toneless: np.ndarray
    confusions: np.ndarray

    def save(self, path: str | Path) -> None:
        """Write one ``.npz`` file."""
        save_arrays(path, {field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def load(cls, path: str | Path) -> CandidateTables:
        """Read what :meth:`save` wrote.

        Raises:
            RunError: the file is missing or damaged.
        """
        hint = "copy the run folder again, or train again"
        return load_part(
            path,
            "the network's candidates",
            lambda saved: cls(**{field.name: saved[field.name] for field in fields(cls)}),
            hint,
        )


def rare_priors(tables: CandidateTables) -> np.ndarray:
    """The fixed log-score of each hanzi that a network does not score, (tokens, R); -inf in empty columns."""
    priors = np.where(tables.candidates > PAD_ID, tables.priors, np.inf)
    lowest = priors.min(axis=1, keepdims=True) - _RARE_PENALTY  # (tokens, 1)
    return np.where(tables.rare > PAD_ID, lowest, -np.inf)


def build_tables(symbols: Symbols, counts: csr_array, choices: int) -> CandidateTables:
    """Choose the candidates.

    Args:
        symbols: vocabularies and lexicon.
        counts: (pinyin, hanzi), how often each hanzi has each reading in the training text.
        choices: K, candidates of each token.
    """
    tokens = Tokens(symbols)
    syllables = len(symbols.pinyin)
    known = _known_counts(counts, symbols)
    confusions = confusion_matrix(symbols, shipped_statistics())
    spoken, hanzi = np.nonzero(known)
    errors = _ERROR_RATE * known[spoken, hanzi]  # (pairs,)
    own = round(choices * _OWN_FRACTION)
    rows = []
    for probabilities, allowed, counted in zip(
        np.ascontiguousarray(confusions.T), symbols.candidates, known, strict=True
    ):
        misrecognised = np.bincount(
            hanzi, probabilities[spoken] * errors, minlength=len(symbols.hanzi)
        )  # (hanzi,)
        rows.append(_tonal_row(allowed, counted, misrecognised, choices, own))
    rows[PAD_ID] = _Row(*(np.zeros(0, np.int32) for _ in range(3)))
    for members in tokens.members:
        rows.append(_toneless_row(symbols.candidates[members], known[members].sum(axis=0), choices))
    unchanged = np.arange(len(tokens), dtype=np.int32)
    has_base = tokens.bases < len(tokens.toneless)
    return CandidateTables(
        candidates=pad_rows([row.candidates for row in rows], choices, fill=PAD_ID),
        priors=pad_rows([row.priors for row in rows], choices, fill=-np.inf, dtype=np.float32),
        rare=pad_rows([row.rare for row in rows], 0, fill=PAD_ID),
        bases=tokens.bases,
        toneless=np.where(has_base, syllables + tokens.bases, unchanged).astype(np.int32),
        confusions=_draw(confusions),
    )


def confusion_matrix(symbols: Symbols, noise: ConfusionStatistics) -> np.ndarray:
    """P(recognised | spoken, misrecognised), (pinyin, pinyin) float32; 0 for tokens without syllable."""
    spoken = [number for number, token in enumerate(symbols.pinyin.tokens) if is_canonical(token)]
    inventory = full_inventory()
    known = np.array([name in symbols.pinyin for name in inventory])
    columns = [symbols.pinyin.index(name) for name in inventory if name in symbols.pinyin]
    matrix = np.zeros((len(symbols.pinyin), len(symbols.pinyin)), np.float32)
    found = noise.matrix([symbols.pinyin.tokens[number] for number in spoken])  # (spoken, inventory)
    matrix[np.ix_(spoken, columns)] = found[:, known]
    return matrix


@dataclass(frozen=True)
class _Row:
    candidates: np.ndarray
    priors: np.ndarray
    rare: np.ndarray


def _tonal_row(
    allowed: np.ndarray, counts: np.ndarray, misrecognised: np.ndarray, choices: int, own: int
) -> _Row:
    """The most frequent hanzi with this reading, then those that are most often misrecognised as it."""
    allowed = _most_frequent(allowed[allowed > UNKNOWN_ID], counts)
    others = misrecognised.copy()
    others[allowed[:own]] = 0
    best = np.argpartition(-others, min(choices, len(others)) - 1)[:choices]
    best = _most_frequent(np.sort(best[others[best] > 0]), others)
    chosen = np.concatenate([allowed[:own], best[: choices - min(own, len(allowed))]])
    if len(chosen) < choices:  # a syllable with few confusions
        further = np.setdiff1d(allowed, chosen, assume_unique=True)
        chosen = np.concatenate([chosen, further[: choices - len(chosen)]])
    return _with_priors(chosen, counts + misrecognised, allowed)


def _toneless_row(allowed: np.ndarray, counts: np.ndarray, choices: int) -> _Row:
    """The most frequent hanzi with this reading in any tone."""
    allowed = np.union1d(allowed[allowed > UNKNOWN_ID], np.flatnonzero(counts))
    return _with_priors(_most_frequent(allowed, counts)[:choices], counts, allowed)


def _with_priors(chosen: np.ndarray, counts: np.ndarray, allowed: np.ndarray) -> _Row:
    if not len(chosen):  # even an unknown syllable needs a candidate
        return _Row(np.array([UNKNOWN_ID], np.int32), np.zeros(1, np.float32), np.zeros(0, np.int32))
    logs = np.log(counts[chosen] + _UNSEEN)
    return _Row(chosen, logs - logs.max(), np.setdiff1d(allowed, chosen))


def _most_frequent(ids: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The ids in descending order of their counts."""
    return ids[np.argsort(-counts[ids], kind="stable")]


def _known_counts(counts: csr_array, symbols: Symbols) -> np.ndarray:
    """The counts of hanzi in the vocabulary, (pinyin, hanzi) float32.

    A syllable that the text does not contain counts once, divided among its hanzi by their frequency.
    """
    known = counts.toarray().astype(np.float32)
    known[[PAD_ID, UNKNOWN_ID]] = 0
    known[:, [PAD_ID, UNKNOWN_ID]] = 0
    frequency = known.sum(axis=0) + _UNSEEN  # (hanzi,)
    for syllable in np.flatnonzero(known.sum(axis=1) == 0):
        allowed = symbols.candidates[syllable][symbols.candidates[syllable] > UNKNOWN_ID]
        known[syllable, allowed] = frequency[allowed] / frequency[allowed].sum()
    return known


def _draw(probabilities: np.ndarray) -> np.ndarray:
    """Equally spaced quantiles of the distribution of each row, (rows, draws) int32; 0 for an empty row."""
    drawn = np.full((len(probabilities), _DRAWS), PAD_ID, np.int32)
    quantiles = (np.arange(_DRAWS) + 0.5) / _DRAWS
    for row in np.flatnonzero(probabilities.sum(axis=1) > 0):
        drawn[row] = np.searchsorted(cumulative(probabilities[row]), quantiles, side="right")
    return drawn
