"""Counted readings and what an acoustic model confuses in; what each syllable may become, for a network, out.

Tokens of the network are the syllables of the vocabulary and then, sorted, the same without their tones. A
tonal syllable becomes one of its most frequent hanzi, or one whose syllable the acoustic model mistakes for
it; a toneless one becomes what it has become most often. Hanzi that are rarer than these aren't rated.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from model_language.vocabulary.symbols import PAD_ID, UNKNOWN_ID, Symbols
from model_language.vocabulary.tokens import toneless_tokens
from utils.errors import RunError
from utils.files import read_arrays, replacing
from utils.mandarin.confusion_statistics import (
    ConfusionStatistics,
    cumulative,
    is_canonical,
    shipped_statistics,
)
from utils.mandarin.pinyin import full_inventory

TABLES_FILE = "context.npz"
"""Name in the run's vocabulary folder."""

# Of the candidates of a tonal syllable, those that are read so.
_OWN_SHARE = 2 / 3
# How often a syllable is heard wrongly, for the candidates that it then brings in.
_ERROR_RATE = 0.1
# Confusions of each syllable to draw from.
_DRAWS = 64
# Counted on top of every candidate.
_UNSEEN = 0.1


@dataclass(frozen=True)
class ContextTables:
    """What the tokens of a network may become, and how they are made worse in training.

    Attributes:
        candidates: (tokens, K) int32, hanzi ids, rows filled with 0; only that of padding is empty.
        priors: (tokens, K) float32, log of their counts, 0 of the most frequent; -inf where there is none.
        rare: (tokens, R) int32, further hanzi that are read so, rows filled with 0.
        bases: (tokens,) int32, the same number for the same syllable in another tone or in none.
        toneless: (tokens,) int32, the token without its tone; one that has none stays.
        confusions: (syllables, draws) int32, what each is heard as where it is misheard, equally probable;
            0 where nothing is known.
    """

    candidates: np.ndarray
    priors: np.ndarray
    rare: np.ndarray
    bases: np.ndarray
    toneless: np.ndarray
    confusions: np.ndarray

    def save(self, path: str | Path) -> None:
        """Write them as ``.npz``."""
        with replacing(path) as temporary:
            np.savez_compressed(temporary, **{one.name: getattr(self, one.name) for one in fields(self)})

    @classmethod
    def load(cls, path: str | Path) -> ContextTables:
        """Read what :meth:`save` wrote.

        Raises:
            RunError: it is missing or damaged.
        """
        try:
            saved = read_arrays(path)
            tables = cls(**{one.name: saved[one.name] for one in fields(cls)})
        except (OSError, KeyError, ValueError) as error:
            hint = "copy the run folder again, or train anew"
            raise RunError(f"the network's candidates are no use ({error})", where=path, hint=hint) from error
        return tables


def build_tables(
    symbols: Symbols, counts: csr_array, choices: int, noise: ConfusionStatistics | None = None
) -> ContextTables:
    """Choose the candidates.

    Args:
        symbols: vocabularies and lexicon.
        counts: (pinyin, hanzi), how often a hanzi is read so in the training text.
        choices: K.
        noise: what is confused; None: the shipped statistics.
    """
    tokens, toneless = symbols.pinyin.tokens, toneless_tokens(symbols)
    place = {base: number for number, base in enumerate(toneless)}
    bases = np.array([place.get(token[:-1], len(place)) for token in tokens] + list(place.values()), np.int32)
    same = np.arange(len(bases), dtype=np.int32)
    tonal = bases < len(place)
    known = _known(counts, symbols)
    misheard_as = heard_as(symbols, noise or shipped_statistics())
    said, hanzi = np.nonzero(known)
    times = _ERROR_RATE * known[said, hanzi]  # (pairs,)
    own = round(choices * _OWN_SHARE)
    rows = []
    for shares, allowed in zip(np.ascontiguousarray(misheard_as.T), symbols.candidates, strict=True):
        misheard = np.bincount(hanzi, shares[said] * times, minlength=len(symbols.hanzi))  # (hanzi,)
        rows.append(_tonal_row(allowed, known[len(rows)], misheard, choices, own))
    rows[PAD_ID] = _Row(*(np.zeros(0, np.int32) for _ in range(3)))
    for base in range(len(place)):
        members = np.flatnonzero(bases[: len(tokens)] == base)
        rows.append(_toneless_row(symbols.candidates[members], known[members].sum(axis=0), choices))
    return ContextTables(
        candidates=_table([row.candidates for row in rows], choices, PAD_ID, np.int32),
        priors=_table([row.priors for row in rows], choices, -np.inf, np.float32),
        rare=_table([row.rare for row in rows], max(len(row.rare) for row in rows), PAD_ID, np.int32),
        bases=bases,
        toneless=np.where(tonal, len(tokens) + bases, same).astype(np.int32),
        confusions=_draws(misheard_as),
    )


@dataclass(frozen=True)
class _Row:
    candidates: np.ndarray
    priors: np.ndarray
    rare: np.ndarray


def _tonal_row(allowed: np.ndarray, said: np.ndarray, misheard: np.ndarray, choices: int, own: int) -> _Row:
    """Hanzi that are read so by how often they are, then those that are said where this is heard."""
    allowed = allowed[allowed > UNKNOWN_ID]
    allowed = _most_frequent(allowed, said)
    others = misheard.copy()
    others[allowed[:own]] = 0
    some = np.argpartition(-others, min(choices, len(others)) - 1)[:choices]
    some = _most_frequent(np.sort(some[others[some] > 0]), others)
    chosen = np.concatenate([allowed[:own], some[: choices - min(own, len(allowed))]])
    if len(chosen) < choices:  # hardly anything is confused with it
        further = np.setdiff1d(allowed, chosen, assume_unique=True)
        chosen = np.concatenate([chosen, further[: choices - len(chosen)]])
    return _rated(chosen, said + misheard, allowed)


def _toneless_row(allowed: np.ndarray, counts: np.ndarray, choices: int) -> _Row:
    """What is read so in any tone, by how often it is."""
    allowed = np.union1d(allowed[allowed > UNKNOWN_ID], np.flatnonzero(counts))
    return _rated(_most_frequent(allowed, counts)[:choices], counts, allowed)


def _rated(chosen: np.ndarray, counts: np.ndarray, allowed: np.ndarray) -> _Row:
    if not len(chosen):  # a syllable that nothing is known of still becomes something
        return _Row(np.array([UNKNOWN_ID], np.int32), np.zeros(1, np.float32), np.zeros(0, np.int32))
    logs = np.log(counts[chosen] + _UNSEEN)
    return _Row(chosen, logs - logs.max(), np.setdiff1d(allowed, chosen))


def _most_frequent(ids: np.ndarray, counts: np.ndarray) -> np.ndarray:
    return ids[np.argsort(-counts[ids], kind="stable")]


def _known(counts: csr_array, symbols: Symbols) -> np.ndarray:
    """The counts of hanzi in the vocabulary, (pinyin, hanzi) float32.

    A syllable that the text doesn't have is as if it had come once, as what it may become by frequency.
    """
    known = counts.toarray().astype(np.float32)
    known[[PAD_ID, UNKNOWN_ID]] = 0
    known[:, [PAD_ID, UNKNOWN_ID]] = 0
    frequency = known.sum(axis=0) + _UNSEEN  # (hanzi,)
    for syllable in np.flatnonzero(known.sum(axis=1) == 0):
        allowed = symbols.candidates[syllable][symbols.candidates[syllable] > UNKNOWN_ID]
        known[syllable, allowed] = frequency[allowed] / frequency[allowed].sum()
    return known


def heard_as(symbols: Symbols, noise: ConfusionStatistics) -> np.ndarray:
    """P(heard | said, misheard), (pinyin, pinyin) float32; rows of what is no syllable are 0."""
    said = [number for number, token in enumerate(symbols.pinyin.tokens) if is_canonical(token)]
    inventory = full_inventory()
    there = np.array([name in symbols.pinyin for name in inventory])
    columns = [symbols.pinyin.index(name) for name in inventory if name in symbols.pinyin]
    result = np.zeros((len(symbols.pinyin), len(symbols.pinyin)), np.float32)
    found = noise.matrix([symbols.pinyin.tokens[number] for number in said])  # (said, inventory)
    result[np.ix_(said, columns)] = found[:, there]
    return result


def _draws(shares: np.ndarray) -> np.ndarray:
    """Equally spaced quantiles of each row's distribution, (rows, draws) int32; 0 of an empty row."""
    result = np.full((len(shares), _DRAWS), PAD_ID, np.int32)
    quantiles = (np.arange(_DRAWS) + 0.5) / _DRAWS
    for row in np.flatnonzero(shares.sum(axis=1) > 0):
        result[row] = np.searchsorted(cumulative(shares[row]), quantiles, side="right")
    return result


def _table(rows: list[np.ndarray], width: int, fill: float, dtype: type) -> np.ndarray:
    table = np.full((len(rows), width), fill, dtype)
    for line, values in zip(table, rows, strict=True):
        line[: len(values)] = values
    return table
