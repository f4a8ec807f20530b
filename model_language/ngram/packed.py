"""Builds n-gram models of about 12 bits per n-gram from a text, and looks up probabilities in them.

The file encodes an n-gram relative to its suffix without the first word, which is always kept too. The last
word of ``a b c`` is one of the words that follow ``b``; its rank among them, by probability, is a small
number. Each n-gram also has a code of its log-probability, which is rounded to a code book. The codes of one
context are in descending order, so only their differences are stored. zlib compresses such numbers almost to
their entropy.

In memory the n-grams of three words and more are found by their hashes. Bigrams, which are used most, have a
dense table instead: one byte for each pair of the :data:`FREQUENT` most frequent words. A bitmap marks which
pairs with a rarer word are n-grams at all. The hashes of bigrams lead to their back-off weights.
"""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from model_language.array_files import load_part
from model_language.ngram.compact_tables import (
    LEVELS,
    VALUE_BITS,
    HashTable,
    PairSet,
    code_book,
    extend_hashes,
    group_steps,
    undo_group_steps,
)
from model_language.ngram.kneser_ney import (
    NgramTable,
    bits_needed,
    check_order,
    count_ngrams,
    estimate_counted,
    ngram_counts,
    occurrences,
)
from model_language.ngram.pruning import prune_to
from model_language.search.grid import HistoryModel
from utils.errors import TrainingError, require

_CODE_BITS = VALUE_BITS // 2  # a value is the code of the probability and the code of the back-off weight
_CODE = np.uint32(LEVELS - 1)
_PART = 1 << 17  # n-grams unpacked at a time, which limits the memory
_ELSEWHERE = 255  # code in the table of bigrams for pairs with a rare word: look in the hash table
_LOWEST = -1e30  # instead of -inf, for products with 0
FREQUENT = 4096  # words in the dense table of bigrams: nearly all that is ever looked up, in 16 MB
log = logging.getLogger("train")


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
        self.unigrams = np.maximum(arrays["unigrams"].astype(np.float32), _LOWEST)
        self._books = arrays["books"].astype(np.float32)  # (order - 1, LEVELS): log-probabilities
        self.history = len(self._books)
        self._weights = arrays["weights"].astype(np.float32)  # (order - 1, LEVELS): log back-off weights
        self._backoffs = self._weights[0][arrays["weights_1"]]
        self.size = len(self.unigrams)
        if len(self._backoffs) != self.size:
            raise ValueError(f"{len(self._backoffs)} back-off weights for {self.size} words")
        by_rank = arrays["by_rank"].astype(np.int32)  # words, the most probable first
        # Ranks of the frequent words; the others share the last row and column of the table.
        self._rare = min(self.size, FREQUENT)
        self._ranks = np.full(self.size, self._rare)
        self._ranks[by_rank[: self._rare]] = np.arange(self._rare)
        self._table_rows = self._ranks * (self._rare + 1)  # where the pairs with a first word begin
        table = np.zeros((self._rare + 1, self._rare + 1), np.uint8)
        table[-1] = table[:, -1] = _ELSEWHERE
        self._bigrams = table.ravel()
        self._tables = list(self._unpacked(arrays, by_rank))  # 2-grams first
        self.ngrams = sum(len(arrays[f"steps_{order}"]) for order in range(2, self.history + 2))

    def score(self, histories: np.ndarray, rows: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """See :class:`HistoryModel`."""
        last = histories[:, -1].astype(np.int64).take(rows)
        codes = self._bigram_codes(last, tokens)
        result = self._bigram_log_probs(codes, last, tokens)
        known = codes.nonzero()[0]  # indices of the n-grams found in the order below
        for order in range(3, self.history + 2):
            context, weights = self._contexts(histories[:, self.history + 1 - order :])
            result += self._weights[order - 2].take(weights).take(rows)
            after = rows.take(known)
            followed = weights.take(after).nonzero()[0]
            known, after = known.take(followed), after.take(followed)
            hashes = extend_hashes(context.take(after), tokens.take(known))
            found = self._tables[order - 2].find(hashes) >> _CODE_BITS
            hits = found.nonzero()[0]
            known = known.take(hits)
            result[known] = self._books[order - 2].take(found.take(hits))
        return result

    def preview(self, last: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """See :class:`HistoryModel`: the bigrams, which are found without hashes."""
        return self.after(last, tokens)

    def after(self, previous: np.ndarray, words: np.ndarray) -> np.ndarray:
        """log P(word | previous word), float32, for id arrays that broadcast; 0 is a boundary."""
        return self._bigram_log_probs(self._bigram_codes(previous, words), previous, words)

    def _bigram_log_probs(self, codes: np.ndarray, previous: np.ndarray, words: np.ndarray) -> np.ndarray:
        """log P(word | previous word), float32, for the codes of the bigrams."""
        lower = self.unigrams.take(words) + self._backoffs.take(previous)
        lower *= codes == 0  # a seventh of the time of `where`; the level of code 0 is 0
        lower += self._books[0].take(codes)
        return lower

    def _bigram_codes(self, previous: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Codes of the bigrams of id arrays that broadcast, 0 for one that is not there; uint8."""
        codes = self._bigrams.take(self._table_rows.take(previous) + self._ranks.take(words))
        flat = codes.reshape(-1)  # indices of a single axis are found and used several times as fast
        rare = (flat == _ELSEWHERE).nonzero()[0]
        if len(rare):
            previous, words = (
                np.broadcast_to(ids, codes.shape).reshape(-1).take(rare) for ids in (previous, words)
            )
            known = self._rare_pairs.find(previous.astype(np.int64) * self.size + words).nonzero()[0]
            hashes = extend_hashes(previous.take(known), words.take(known))
            values = np.zeros(len(words), np.uint8)
            values[known] = self._tables[0].find(hashes) >> _CODE_BITS
            flat[rare] = values
        return codes

    def _contexts(self, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Hashes of contexts (N, words) and codes of their back-off weights, 0 if nothing follows."""
        hashes = words[:, 0]
        for following in words[:, 1:].T:
            hashes = extend_hashes(hashes, following)
        return hashes, self._tables[words.shape[1] - 2].find(hashes) & _CODE

    def _unpacked(self, arrays: Mapping[str, np.ndarray], by_rank: np.ndarray) -> Iterator[HashTable]:
        """Fill the dense table of bigrams; yield the hash table of each order, from 2 on."""
        nothing, zero = np.zeros(self.size, np.int32), np.zeros(1, np.int32)
        known = _Known(np.arange(self.size, dtype=np.uint64), by_rank, nothing, zero)
        for order in range(2, self.history + 2):
            if order > max(2, self.history):  # nothing is unpacked after it
                parts = _followers(known, arrays, order, with_weights=False)
                yield HashTable(len(arrays[f"steps_{order}"]), ((part.hashes, part.values) for part in parts))
            else:
                table, known = self._with_followers(known, arrays, order)
                yield table

    def _with_followers(
        self, known: "_Known", arrays: Mapping[str, np.ndarray], order: int
    ) -> tuple[HashTable, "_Known"]:
        """The hash table of an order, and what is needed to unpack the next one."""
        parts = list(_followers(known, arrays, order, order <= self.history))
        hashes, last, ends, values = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("hashes", "last", "ends", "values")
        )
        del parts
        counts = arrays[f"counts_{order}"]
        firsts = np.cumsum(counts, dtype=np.int32) - counts
        following = _Known(hashes, last, last if order == 2 else ends, firsts)
        if order == 2:
            kept = self._outside_open_table(np.repeat(np.arange(self.size), counts), last, values)
            hashes, values = hashes.take(kept), values.take(kept)
        return HashTable(len(hashes), [(hashes, values)]), following

    def _outside_open_table(self, previous: np.ndarray, last: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Fill the dense table; return the indices of bigrams that are needed in the hash table too."""
        left, right = self._ranks.take(previous), self._ranks.take(last)
        frequent = (left < self._rare) & (right < self._rare)
        rare = (~frequent).nonzero()[0]
        self._rare_pairs = PairSet(previous.take(rare) * self.size + last.take(rare), self.size)
        inside = frequent.nonzero()[0]
        cells = left.take(inside) * (self._rare + 1) + right.take(inside)
        self._bigrams[cells] = values.take(inside) >> _CODE_BITS
        return (~frequent | (values & _CODE > 0)).nonzero()[0]


@dataclass(frozen=True)
class _Known:
    """The n-grams of one order while the next is unpacked, all arrays (N,) in the order of the file.

    Attributes:
        hashes: see :func:`model_language.ngram.compact_tables.extend_hashes`.
        last: last words of the n-grams.
        ends: indices of their suffixes (without the first word) in the order below; for bigrams, the last
            words.
        firsts: indices of their first followers.
    """

    hashes: np.ndarray
    last: np.ndarray
    ends: np.ndarray
    firsts: np.ndarray


@dataclass(frozen=True)
class _Part:
    """Some n-grams of an order, see :class:`_Known`; ``values``: codes of probability and back-off weight."""

    hashes: np.ndarray
    last: np.ndarray
    ends: np.ndarray
    values: np.ndarray


def _followers(
    known: _Known, arrays: Mapping[str, np.ndarray], order: int, with_weights: bool
) -> Iterator[_Part]:
    """The n-grams that are one word longer than the known ones, part by part.

    Raises:
        ValueError: a code is not in its code book.
    """
    low, high, steps = (arrays[f"{name}_{order}"] for name in ("ranks_low", "ranks_high", "steps"))
    counts = arrays[f"counts_{order}"]
    begins = np.append(0, np.cumsum(counts, dtype=np.int64))
    bounds = np.searchsorted(begins, np.arange(0, len(steps) + _PART, _PART))
    for start, stop in pairwise(np.unique(np.minimum(bounds, len(counts)))):
        here, inside = counts[start:stop], slice(begins[start], begins[stop])
        rank = high[inside].astype(np.int32) << 8 | low[inside]
        ends = np.repeat(known.firsts.take(known.ends[start:stop]), here) + rank
        last = known.last.take(ends)
        codes = np.uint8(LEVELS - 1) - undo_group_steps(steps[inside], here)
        weights = arrays[f"weights_{order}"][inside] if with_weights else np.zeros(1, np.uint8)
        if max(codes.max(initial=0), weights.max(initial=0)) >= LEVELS:
            raise ValueError(f"a code of order {order} is not in its code book")
        values = (codes.astype(np.uint16) << _CODE_BITS) | weights
        yield _Part(extend_hashes(np.repeat(known.hashes[start:stop], here), last), last, ends, values)


def read_packed(path: str | Path) -> PackedNgrams:
    """The model of an ``.npz`` file with the arrays of :func:`pack`.

    Raises:
        RunError: the file is missing or damaged.
    """
    return load_part(path, "the n-gram model", PackedNgrams)


def pack(tables: Sequence[NgramTable]) -> dict[str, np.ndarray]:
    """Pack tables; their values are rounded to code books.

    Args:
        tables: one for each order, 1-grams first, which hold all ids. The suffix of each n-gram (without its
            first word) and its context must be in the table of the order below.

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
    arrays: dict[str, np.ndarray] = {
        "unigrams": tables[0].log_probs.astype(np.float32),
        "by_rank": by_rank.astype(np.uint16),
    }
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


def build_packed(ids: np.ndarray, size: int, order: int, ngrams: int) -> dict[str, np.ndarray]:
    """Build the arrays of :class:`model_language.ngram.packed.PackedNgrams`.

    Order 4 needs some 70 bytes of memory for each hanzi of the text.

    Args:
        ids: (tokens,) int, lines with one 0 before, between and after them.
        size: number of ids.
        order: length of the longest n-grams.
        ngrams: number of n-grams of two hanzi and more to keep: those that change the model most.

    Raises:
        ConfigError: the order, or the number of n-grams, is not possible.
        TrainingError: the text is empty.
    """
    check_order(order, size)
    require(ngrams >= 1, f"cannot keep {ngrams} n-grams", where="model.ngrams", hint="1 or more")
    if not np.any(ids):
        raise TrainingError("no training text for the n-grams", hint="see data.train of the config")
    start = time.perf_counter()
    grams = count_ngrams(ids, order, size)
    counts, tables = occurrences(grams), estimate_counted(grams)
    del grams
    log.info("counted %s in %.0f s", _counts(tables), time.perf_counter() - start)
    tables = prune_to(tables, counts, ngrams)
    log.info("kept %s after %.0f s", _counts(tables), time.perf_counter() - start)
    arrays = pack(tables)
    log.info("packed after %.0f s", time.perf_counter() - start)
    return arrays


def _counts(tables: Sequence[NgramTable]) -> str:
    return ngram_counts([len(table.keys) for table in tables])
