"""Pruned Kneser–Ney tables in; some 12 bits an n-gram on disk, quick look-ups in memory, out.

On disk an n-gram is told by what is known of it already. A kept n-gram's end, one word shorter, is kept too;
so the last word of ``a b c`` is one of those that follow ``b``, and its place among them, the most probable
first, is a small number. Beside it stands a position in a code book of log-probabilities; those of one
context fall, and only the steps are kept. zlib packs such numbers to almost their entropy.

In memory n-grams are found by their hashes. Bigrams, which are asked for most, lie open beside, a byte a pair
of words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from model_language.code_book import LEVELS, code_book
from model_language.code_table import VALUE_BITS, CodeTable, extended
from model_language.kneser_ney import NgramTable, bits_needed
from utils import files
from utils.errors import RunError
from utils.files import replacing

_CODE_BITS = VALUE_BITS // 2  # an entry's value: code of the probability, code of the back-off weight
_CODE = np.uint32(LEVELS - 1)


class PackedNgrams:
    """P(word | words before), see :class:`model_language.decoding.HistoryModel`.

    Args:
        arrays: of :func:`pack`.

    Raises:
        KeyError, IndexError, ValueError: they aren't; :func:`read_packed` tells the user.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]):
        self.unigrams = arrays["unigrams"].astype(np.float32)
        self._books = arrays["books"].astype(np.float32)  # (order - 1, LEVELS): log-probabilities
        self._weights = arrays["weights"].astype(np.float32)  # (order - 1, LEVELS): back-off weights, logs
        self._backoffs = self._weights[0][arrays["weights_1"]]
        self.size = len(self.unigrams)
        if len(self._backoffs) != self.size:
            raise ValueError(f"{len(self._backoffs)} back-off weights of {self.size} words")
        self._bigrams = np.zeros(self.size * self.size, np.uint8)
        self._tables = [CodeTable(*entries) for entries in self._unpack(arrays)]  # from 2-grams on

    @property
    def history(self) -> int:
        """How many words back the model looks."""
        return len(self._books)

    @property
    def ngrams(self) -> int:
        """How many of two words and more."""
        return sum(map(len, self._tables))

    def log_probs(self, histories: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Log-probabilities of words after histories.

        Args:
            histories: (N, history) int, oldest first; 0 where the sentence has not begun.
            words: (N, K) int; 0 asks for the end of the sentence.

        Returns:
            (N, K) float32.
        """
        rows = np.repeat(np.arange(len(words)), words.shape[1])
        return self.rated(histories, rows, words.ravel()).reshape(words.shape)

    def rated(self, histories: np.ndarray, rows: np.ndarray, words: np.ndarray) -> np.ndarray:
        """The same of single words (E,), where rows (E,) tells which history each follows: (E,) float32."""
        last = histories[:, -1].astype(np.int64)
        codes = self._bigrams.take((last * self.size).take(rows) + words)
        lower = self.unigrams.take(words) + self._backoffs.take(last).take(rows)
        result = np.where(codes, self._books[0].take(codes), lower)
        known = np.flatnonzero(codes)  # places of the n-grams of the order below
        for order in range(3, self.history + 2):
            context, weights = self._contexts(histories[:, self.history + 1 - order :])
            result += self._weights[order - 2].take(weights).take(rows)
            after = rows.take(known)
            followed = np.flatnonzero(weights.take(after))
            known, after = known.take(followed), after.take(followed)
            hashes = extended(context.take(after), words.take(known))
            found = self._tables[order - 2].find(hashes) >> _CODE_BITS
            there = np.flatnonzero(found)
            known = known.take(there)
            result[known] = self._books[order - 2].take(found.take(there))
        return result

    def after(self, previous: np.ndarray, words: np.ndarray) -> np.ndarray:
        """log P(word | the one before), float32, of ids in arrays that broadcast; 0 is a boundary."""
        codes = self._bigrams.take(previous * self.size + words)
        lower = self.unigrams.take(words) + self._backoffs.take(previous)
        return np.where(codes, self._books[0].take(codes), lower)

    def _contexts(self, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Hashes of contexts (N, words) and codes of their back-off weights, 0 where nothing follows."""
        hashes = words[:, 0]
        for following in words[:, 1:].T:
            hashes = extended(hashes, following)
        return hashes, self._tables[words.shape[1] - 2].find(hashes) & _CODE

    def _unpack(self, arrays: Mapping[str, np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Fill the open bigrams; give hashes and values of all n-grams, order by order."""
        by_rank = arrays["by_rank"].astype(np.int32)  # words, the most probable first
        # Of each n-gram of the order below: its hash, its last word, the place of its end in the order below
        # that, and where its followers begin.
        hashes, last, ends, firsts = np.arange(self.size), None, None, None
        for order in range(2, self.history + 2):
            counts = arrays[f"counts_{order}"]
            rank = arrays[f"ranks_high_{order}"].astype(np.int32) << 8
            rank |= arrays[f"ranks_low_{order}"]
            codes = _rising(arrays[f"steps_{order}"], counts)
            weights = arrays[f"weights_{order}"] if order <= self.history else np.zeros(len(rank), np.uint8)
            if order == 2:
                last = ends = by_rank.take(rank)
                self._bigrams[np.repeat(np.arange(self.size) * self.size, counts) + last] = codes
            else:
                ends = np.repeat(firsts.take(ends), counts) + rank  # of the n-gram without its first word
                last = last.take(ends)
            if max(codes.max(initial=0), weights.max(initial=0)) >= LEVELS:
                raise ValueError(f"a code of order {order} is in no code book")
            hashes = extended(np.repeat(hashes, counts), last)
            yield hashes, (codes.astype(np.uint32) << _CODE_BITS) | weights
            firsts = np.cumsum(counts, dtype=np.int32) - counts


def read_packed(path: str | Path) -> PackedNgrams:
    """The model of a file that :func:`save_packed` wrote.

    Raises:
        RunError: the file is missing or damaged.
    """
    try:
        return PackedNgrams(files.read_arrays(path))
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise RunError(
            f"can't read the n-gram model ({error})", where=path, hint="copy the run again"
        ) from error


def save_packed(path: str | Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write what :func:`pack` made into one ``.npz`` file."""
    with replacing(path) as temporary:
        np.savez_compressed(temporary, **arrays)


def pack(tables: Sequence[NgramTable]) -> dict[str, np.ndarray]:
    """Pack tables; what they hold is rounded to code books.

    Args:
        tables: one an order, 1-grams first; these hold all ids. The end of an n-gram, without its first word,
            must be in the table below, and so must its context.

    Returns:
        the arrays of :class:`PackedNgrams`.
    """
    size = len(tables[0].keys)
    bits = bits_needed(size)
    by_rank = np.argsort(-tables[0].log_probs, kind="stable")
    # Of the order below: order on disk, and place among its siblings of each n-gram of the sorted table.
    disk, sibling = np.arange(size), np.empty(size, np.int64)
    sibling[by_rank] = np.arange(size)
    books, weights = [], []
    arrays = {"unigrams": tables[0].log_probs.astype(np.float32), "by_rank": by_rank.astype(np.uint16)}
    for order, (below, table) in enumerate(pairwise(tables), start=2):
        context = np.searchsorted(below.keys, table.keys >> bits)
        end = np.searchsorted(below.keys, table.keys & ((1 << bits * (order - 1)) - 1))
        position = np.empty(len(disk), np.int64)
        position[disk] = np.arange(len(disk))
        book, codes = code_book(table.log_probs)
        books.append(book)
        ranks = sibling[end]
        by_place = np.lexsort((ranks, -codes.astype(np.int64), position[context]))
        counts = np.bincount(position[context], minlength=len(below.keys))
        starts = np.cumsum(counts) - counts
        book, arrays[f"weights_{order - 1}"] = _weight_book(below.backoffs[disk], counts > 0)
        weights.append(book)
        arrays[f"counts_{order}"] = counts.astype(np.uint16)
        arrays[f"ranks_low_{order}"] = (ranks[by_place] & 255).astype(np.uint8)
        arrays[f"ranks_high_{order}"] = (ranks[by_place] >> 8).astype(np.uint8)
        arrays[f"steps_{order}"] = _steps(codes[by_place], counts)
        sibling = np.empty(len(by_place), np.int64)
        sibling[by_place] = np.arange(len(by_place)) - np.repeat(starts, counts)
        disk = by_place
    return {**arrays, "books": np.stack(books), "weights": np.stack(weights)}


def _steps(codes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Codes that fall within each group → how far from LEVELS - 1, then from one to the next, uint8."""
    steps = -np.diff(codes.astype(np.int64), prepend=LEVELS - 1)
    first = (np.cumsum(counts) - counts)[counts > 0]
    steps[first] = LEVELS - 1 - codes[first]
    return steps.astype(np.uint8)


def _rising(steps: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The inverse of :func:`_steps`: (n,) uint8."""
    # Sums modulo 256 will do: what they are taken for, differences, is below LEVELS.
    fallen = np.cumsum(steps, dtype=np.uint8)
    first = np.cumsum(counts, dtype=np.int32) - counts
    before = np.append(np.uint8(0), fallen).take(first)  # of all groups ahead
    return np.uint8(LEVELS - 1) - (fallen - np.repeat(before, counts))


def _weight_book(backoffs: np.ndarray, followed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same for the weights of contexts; level 0 stands for log 1, of those that nothing follows."""
    book, found = code_book(backoffs[followed])
    codes = np.zeros(len(backoffs), np.uint8)
    codes[followed] = found
    return book, codes
