"""Pruned Kneser–Ney tables in; a file with about 12 bits per n-gram, and a model with fast look-ups, out.

The file encodes an n-gram relative to its suffix without the first word, which is always kept too. The last
word of ``a b c`` is one of the words that follow ``b``; its rank among them, by probability, is a small
number. Each n-gram also has a code of its log-probability, which is rounded to a code book. The codes of one
context are in descending order, so only their differences are stored. zlib compresses such numbers almost to
their entropy.

In memory the n-grams of three words and more are found by their hashes. Bigrams, which are used most, have a
dense table instead: one byte for each pair of words. The hashes of bigrams lead to their back-off weights.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from model_language.files import load_part
from model_language.ngram.code_book import LEVELS, code_book, group_steps, undo_group_steps
from model_language.ngram.hash_table import VALUE_BITS, HashTable, extend_hashes
from model_language.ngram.kneser_ney import NgramTable, bits_needed
from model_language.search.grid import HistoryModel

_CODE_BITS = VALUE_BITS // 2  # a value is the code of the probability and the code of the back-off weight
_CODE = np.uint32(LEVELS - 1)
_PART = 1 << 19  # n-grams unpacked at a time, which limits the memory


class PackedNgrams(HistoryModel):
    """P(word | words before).

    Args:
        arrays: the result of :func:`pack`.

    Attributes:
        size: number of ids.
        ngrams: number of n-grams of two words and more.

    Raises:
        KeyError, IndexError, ValueError: the arrays are unsuitable; :func:`read_packed` names the file.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]):
        self.unigrams = arrays["unigrams"].astype(np.float32)
        self._books = arrays["books"].astype(np.float32)  # (order - 1, LEVELS): log-probabilities
        self.history = len(self._books)
        self._weights = arrays["weights"].astype(np.float32)  # (order - 1, LEVELS): log back-off weights
        self._backoffs = self._weights[0][arrays["weights_1"]]
        self.size = len(self.unigrams)
        if len(self._backoffs) != self.size:
            raise ValueError(f"{len(self._backoffs)} back-off weights for {self.size} words")
        self._bigrams = np.zeros(self.size * self.size, np.uint8)
        self._tables = list(self._unpacked(arrays))  # 2-grams first
        self.ngrams = sum(len(arrays[f"steps_{order}"]) for order in range(2, self.history + 2))

    def score(self, histories: np.ndarray, rows: np.ndarray, words: np.ndarray) -> np.ndarray:
        """See :class:`HistoryModel`."""
        last = histories[:, -1].astype(np.int64)
        codes = self._bigrams.take((last * self.size).take(rows) + words)
        lower = self.unigrams.take(words) + self._backoffs.take(last).take(rows)
        result = np.where(codes, self._books[0].take(codes), lower)
        known = codes.nonzero()[0]  # indices of the n-grams found in the order below
        for order in range(3, self.history + 2):
            context, weights = self._contexts(histories[:, self.history + 1 - order :])
            result += self._weights[order - 2].take(weights).take(rows)
            after = rows.take(known)
            followed = weights.take(after).nonzero()[0]
            known, after = known.take(followed), after.take(followed)
            hashes = extend_hashes(context.take(after), words.take(known))
            found = self._tables[order - 2].find(hashes) >> _CODE_BITS
            hits = found.nonzero()[0]
            known = known.take(hits)
            result[known] = self._books[order - 2].take(found.take(hits))
        return result

    def preview(self, last: np.ndarray, words: np.ndarray) -> np.ndarray:
        """See :class:`HistoryModel`: the bigrams, which are found without hashes."""
        return self.after(last[:, None].astype(np.int64), words)

    def after(self, previous: np.ndarray, words: np.ndarray) -> np.ndarray:
        """log P(word | previous word), float32, for id arrays that broadcast; 0 is a boundary."""
        codes = self._bigrams.take(previous * self.size + words)
        lower = self.unigrams.take(words) + self._backoffs.take(previous)
        return np.where(codes, self._books[0].take(codes), lower)

    def _contexts(self, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Hashes of contexts (N, words) and codes of their back-off weights, 0 if nothing follows."""
        hashes = words[:, 0]
        for following in words[:, 1:].T:
            hashes = extend_hashes(hashes, following)
        return hashes, self._tables[words.shape[1] - 2].find(hashes) & _CODE

    def _unpacked(self, arrays: Mapping[str, np.ndarray]) -> Iterator[HashTable]:
        """Fill the dense table of bigrams; yield the hash table of each order, from 2 on."""
        by_rank = arrays["by_rank"].astype(np.int32)  # words, the most probable first
        counts, rank, codes, weights = self._stored(arrays, 2)
        unigrams = _Known(np.arange(self.size), by_rank, np.zeros(self.size, np.int32), np.zeros(1, np.int32))
        hashes, last, _ = map(np.concatenate, zip(*_followers(unigrams, counts, rank), strict=True))
        known = _Known(hashes, last, last, np.cumsum(counts, dtype=np.int32) - counts)
        for previous, (first, count) in enumerate(zip(known.firsts.tolist(), counts.tolist(), strict=True)):
            here = slice(first, first + count)
            self._bigrams[previous * self.size + last[here]] = codes[here]
        followed = weights.nonzero()[0]  # the others are found in the dense table
        parts = np.array_split(followed, len(followed) // _PART + 1)
        yield HashTable(len(followed), ((hashes.take(part), weights.take(part)) for part in parts))
        for order in range(3, self.history + 2):
            counts, rank, codes, weights = self._stored(arrays, order)
            values = (codes.astype(np.uint16) << _CODE_BITS) | weights
            parts = _followers(known, counts, rank)
            if order <= self.history:
                found = map(np.concatenate, zip(*parts, strict=True))
                known = _Known(*found, np.cumsum(counts, dtype=np.int32) - counts)
                parts = iter([(known.hashes, known.last, known.ends)])
            yield HashTable(len(rank), _with_values(parts, values))

    def _stored(self, arrays: Mapping[str, np.ndarray], order: int) -> tuple[np.ndarray, ...]:
        """The arrays of an order: followers of each shorter n-gram, ranks, codes, codes of weights."""
        counts = arrays[f"counts_{order}"]
        rank = arrays[f"ranks_high_{order}"].astype(np.uint16) << 8
        rank |= arrays[f"ranks_low_{order}"]
        codes = np.uint8(LEVELS - 1) - undo_group_steps(arrays[f"steps_{order}"], counts)
        weights = arrays[f"weights_{order}"] if order <= self.history else np.zeros(len(rank), np.uint8)
        if max(codes.max(initial=0), weights.max(initial=0)) >= LEVELS:
            raise ValueError(f"a code of order {order} is not in its code book")
        return counts, rank, codes, weights


@dataclass(frozen=True)
class _Known:
    """The n-grams of one order while the next is unpacked, all arrays (N,) in the order of the file.

    Attributes:
        hashes: see :func:`model_language.ngram.hash_table.extend_hashes`.
        last: their last words.
        ends: indices of their suffixes (without the first word) in the order below; for bigrams, the last
            words.
        firsts: indices of their first followers.
    """

    hashes: np.ndarray
    last: np.ndarray
    ends: np.ndarray
    firsts: np.ndarray


def _followers(
    known: _Known, counts: np.ndarray, rank: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Hashes, last words and ends of the n-grams that are one word longer, part by part."""
    begins = np.append(0, np.cumsum(counts, dtype=np.int64))
    bounds = np.searchsorted(begins, np.arange(0, len(rank) + _PART, _PART))
    for start, stop in pairwise(np.unique(np.minimum(bounds, len(counts)))):
        here = counts[start:stop]
        ends = np.repeat(known.firsts.take(known.ends[start:stop]), here) + rank[begins[start] : begins[stop]]
        last = known.last.take(ends)
        yield extend_hashes(np.repeat(known.hashes[start:stop], here), last), last, ends


def _with_values(
    parts: Iterable[tuple[np.ndarray, ...]], values: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The hashes of each part with their values."""
    start = 0
    for hashes, *_ in parts:
        yield hashes, values[start : start + len(hashes)]
        start += len(hashes)


def read_packed(path: str | Path) -> PackedNgrams:
    """The model of an ``.npz`` file with the arrays of :func:`pack`.

    Raises:
        RunError: the file is missing or damaged.
    """
    return load_part(path, "the n-gram model", PackedNgrams)


def pack(tables: Sequence[NgramTable]) -> dict[str, np.ndarray]:
    """Pack tables; their values are rounded to code books.

    Args:
        tables: one for each order, 1-grams first, which hold all ids. The end of each n-gram (without its
            first word) and its context must be in the table below.

    Returns:
        The arrays of :class:`PackedNgrams`.
    """
    size = len(tables[0].keys)
    bits = bits_needed(size)
    by_rank = np.argsort(-tables[0].log_probs, kind="stable")
    # For the order below: its order in the file, and the rank of each n-gram among those with its context.
    disk, sibling = np.arange(size), np.empty(size, np.int64)
    sibling[by_rank] = np.arange(size)
    books, weights = [], []
    arrays = {"unigrams": tables[0].log_probs.astype(np.float32), "by_rank": by_rank.astype(np.uint16)}
    for order, (below, table) in enumerate(pairwise(tables), start=2):
        context = np.searchsorted(below.keys, table.keys >> bits)
        end = np.searchsorted(below.keys, table.keys & ((1 << bits * (order - 1)) - 1))
        position = np.empty(len(disk), np.int64)  # in the file
        position[disk] = np.arange(len(disk))
        book, codes = code_book(table.log_probs)
        books.append(book)
        ranks = sibling[end]
        ordered = np.lexsort((ranks, -codes.astype(np.int64), position[context]))
        counts = np.bincount(position[context], minlength=len(below.keys))
        starts = np.cumsum(counts) - counts
        book, arrays[f"weights_{order - 1}"] = _weight_book(below.backoffs[disk], counts > 0)
        weights.append(book)
        arrays[f"counts_{order}"] = counts.astype(np.uint16)
        arrays[f"ranks_low_{order}"] = (ranks[ordered] & 255).astype(np.uint8)
        arrays[f"ranks_high_{order}"] = (ranks[ordered] >> 8).astype(np.uint8)
        arrays[f"steps_{order}"] = group_steps(LEVELS - 1 - codes[ordered].astype(np.int64), counts).astype(
            np.uint8
        )
        sibling = np.empty(len(ordered), np.int64)
        sibling[ordered] = np.arange(len(ordered)) - np.repeat(starts, counts)
        disk = ordered
    return {**arrays, "books": np.stack(books), "weights": np.stack(weights)}


def _weight_book(backoffs: np.ndarray, followed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Code book and codes of the log-weights of contexts; code 0 is log 1, for contexts without followers."""
    book, found = code_book(backoffs[followed])
    codes = np.zeros(len(backoffs), np.uint8)
    codes[followed] = found
    return book, codes
