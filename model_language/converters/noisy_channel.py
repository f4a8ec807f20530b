"""Noisy channel: the probability that a hanzi is recognised as a given syllable, correctly or by mistake.

P(recognised | hanzi) = Σ over the readings of the hanzi of P(reading | hanzi) · P(recognised | reading). The
first factor is counted in the training text, the second in the errors of acoustic models: a reading is
recognised correctly with probability 1 − error rate, otherwise as the acoustic model confuses it. Only the
more probable of the two cases is kept, and without the error rate, which differs between sentences. A
recognised syllable without a tone may have any of the five tones.

The candidates of a token are the hanzi that the network scores, then the most probable others by
P(recognised | hanzi) · P(hanzi), then the remaining ones of the lexicon.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from model_language.array_files import load_part, save_arrays
from model_language.vocabulary.symbols import PAD_ID, UNKNOWN_ID, Symbols, Tokens
from utils.arrays import pad_rows

_LOWEST = -20.0  # replaces the log-probability of a candidate whose probability is 0
_UNSEEN = 0.1  # added to the count of each reading that the lexicon has
_USUAL_ERROR_RATE = 0.02  # used to choose the candidates


@dataclass(frozen=True)
class EmissionTables:
    """The candidate hanzi of each token (:class:`model_language.vocabulary.symbols.Tokens`), with emissions.

    Attributes:
        candidates: (tokens, C) int32, hanzi ids, 0 in empty columns.
        log_emissions: (tokens, C) float32, log P(token | hanzi, recognised correctly), or where
            ``misrecognised``, log P(token | hanzi, misrecognised); -inf in empty columns.
        misrecognised: (tokens, C) bool, where the token is more probably a recognition error than a reading
            of the hanzi.
        log_priors: (tokens, C) float32, log P(hanzi | token) without context; -inf in empty columns.
        searched: number of columns that a search for the best path reads.
    """

    candidates: np.ndarray
    log_emissions: np.ndarray
    misrecognised: np.ndarray
    log_priors: np.ndarray
    searched: int

    def emissions(self, error_rate: float) -> np.ndarray:
        """log P(token | hanzi) at an error rate, (tokens, C) float32."""
        cases = np.log([1 - error_rate, error_rate]).astype(np.float32)
        return self.log_emissions + cases[self.misrecognised.astype(np.int8)]

    def without_errors(self, tokens: Tokens, hanzi: int, network_columns: int) -> EmissionTables:
        """The tables for syllables that are certain: the only candidates are hanzi with this reading.

        A syllable without such hanzi keeps ``<unk>`` alone.

        Args:
            tokens: the tokens.
            hanzi: number of hanzi ids.
            network_columns: number of columns that belong to a network; they stay where they are, 0 for a
                dropped candidate. The columns after them move up.
        """
        readable = np.zeros((len(self.candidates), hanzi), bool)
        for row, ids in zip(readable, tokens.lexicon_rows(), strict=True):
            row[ids[ids > UNKNOWN_ID]] = True
        kept = np.take_along_axis(readable, self.candidates, axis=1)
        order = np.argsort(~kept & (np.arange(kept.shape[1]) >= network_columns), axis=1, kind="stable")
        # Where an error was more probable than a rare reading, it is the upper bound of that reading.
        odds = np.float32(np.log(_USUAL_ERROR_RATE / (1 - _USUAL_ERROR_RATE)))
        emissions = self.log_emissions + odds * self.misrecognised
        candidates, emissions, priors = (
            np.take_along_axis(np.where(kept, table, empty), order, axis=1)
            for table, empty in ((self.candidates, PAD_ID), (emissions, -np.inf), (self.log_priors, -np.inf))
        )
        unreadable = ~np.any(kept, axis=1)
        unreadable[PAD_ID] = False
        candidates[unreadable, 0], emissions[unreadable, 0], priors[unreadable, 0] = UNKNOWN_ID, 0.0, 0.0
        return EmissionTables(candidates, emissions, np.zeros_like(kept), priors, self.searched)

    def save(self, path: str | Path) -> None:
        """Write one ``.npz`` file, logs in half precision."""
        save_arrays(
            path,
            {
                "candidates": self.candidates.astype(np.uint16),
                "log_emissions": self.log_emissions.astype(np.float16),
                "misrecognised": self.misrecognised,
                "log_priors": self.log_priors.astype(np.float16),
                "searched": np.array(self.searched),
            },
        )

    @classmethod
    def load(cls, path: str | Path) -> EmissionTables:
        """Read what :meth:`save` wrote.

        Raises:
            RunError: the file is missing or damaged.
        """
        return load_part(path, "the candidates", cls._from_arrays)

    @classmethod
    def _from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> EmissionTables:
        return cls(
            candidates=arrays["candidates"].astype(np.int32),
            log_emissions=arrays["log_emissions"].astype(np.float32),
            misrecognised=arrays["misrecognised"].astype(bool),
            log_priors=arrays["log_priors"].astype(np.float32),
            searched=int(arrays["searched"]),
        )


def build_emissions(
    symbols: Symbols, counts: np.ndarray, network_candidates: np.ndarray, confusions: np.ndarray, others: int
) -> EmissionTables:
    """Build the tables.

    Args:
        symbols: vocabularies and lexicon.
        counts: (pinyin, hanzi), how often each hanzi has each reading in the training text.
        network_candidates: (tokens, K), the candidates that a network scores; they stay the first.
        confusions: (pinyin, pinyin), P(recognised | spoken, misrecognised), see
            :func:`model_language.networks.candidates.confusion_matrix`.
        others: candidates beyond the network's that a search for the best path reads.
    """
    counts = counts.astype(np.float32)
    counts[:, [PAD_ID, UNKNOWN_ID]] = 0
    rows, columns = np.nonzero(symbols.candidates > UNKNOWN_ID)
    counts[rows, symbols.candidates[rows, columns]] += _UNSEEN
    frequency = counts.sum(axis=0)  # (hanzi,)
    readings = counts / np.maximum(frequency, _UNSEEN)  # P(spoken | hanzi), (pinyin, hanzi)
    tokens = Tokens(symbols)
    correct, wrong = (tokens.with_sums(table) for table in (readings, confusions.T @ readings))
    cases = np.stack([(1 - _USUAL_ERROR_RATE) * correct, _USUAL_ERROR_RATE * wrong])  # (2, tokens, hanzi)
    emissions = cases.max(axis=0)
    chosen = [
        _choose(row, lexicon, emissions[token] * frequency, others)
        for token, (row, lexicon) in enumerate(zip(network_candidates, tokens.lexicon_rows(), strict=True))
    ]
    candidates = pad_rows(chosen, fill=PAD_ID)
    token = np.arange(len(chosen))[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = emissions * frequency
        priors = np.log(weights[token, candidates] / weights.sum(axis=1, keepdims=True))
        misrecognised = cases[1, token, candidates] > cases[0, token, candidates]
        logs = np.log(np.where(misrecognised, wrong[token, candidates], correct[token, candidates]))
    empty = candidates == PAD_ID
    logs, priors = (
        np.where(empty, -np.inf, np.nan_to_num(table, nan=_LOWEST, neginf=_LOWEST))
        for table in (logs, priors)
    )
    return EmissionTables(candidates, logs, misrecognised, priors, network_candidates.shape[1] + others)


def _choose(
    network_candidates: np.ndarray, lexicon: np.ndarray, weights: np.ndarray, others: int
) -> np.ndarray:
    """Candidate ids in the order of the module docstring; empty columns of the network's stay empty."""
    left = weights.copy()
    left[network_candidates] = 0
    more = np.argsort(-left, kind="stable")[:others]
    more = np.where(left[more] > 0, more, PAD_ID)
    rest = np.setdiff1d(lexicon[lexicon > PAD_ID], np.concatenate([network_candidates, more]))
    return np.concatenate([network_candidates, more, rest]).astype(np.int32)
