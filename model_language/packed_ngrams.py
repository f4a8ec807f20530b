"""Pruned Kneser–Ney tables in; some 12 bits an n-gram on disk, quick look-ups in memory, out.

On disk an n-gram is told by what is known of it already. A kept n-gram's end, one word shorter, is kept too;
so the last word of ``a b c`` is one of those that follow ``b``, and its place among them, the most probable
first, is a small number. Beside it stands a position in a code book of log-probabilities; those of one
context fall, and only the steps are kept. zlib packs such numbers to almost their entropy.

In memory bigrams lie open, a byte a pair of words. Longer n-grams are sorted by a hash of 48 bits, so
something is taken for another about once in 10^8 look-ups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from model_language.kneser_ney import NgramTable, bits_needed
from utils import files
from utils.errors import RunError
from utils.files import replacing

LEVELS = 64  # of a code book; level 0 is nothing
_CODE_BITS = 8
_HASH_SHIFT = np.uint64(
    2 * _CODE_BITS
)  # an entry: hash, code of the probability, code of the back-off weight
_CODE = np.uint64((1 << _CODE_BITS) - 1)
_BUCKET_BITS = 22
_HISTOGRAM, _LLOYD_ROUNDS = 4096, 40
# Odd constants with well mixed bits: the golden ratio's, and one of SplitMix64's (Steele et al. 2014).
_SPREAD, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


class PackedNgrams:
    """P(word | words before), see :class:`model_language.decoding.HistoryModel`.

    Args:
        arrays: of :func:`pack`.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]):
        self.unigrams = arrays["unigrams"].astype(np.float32)
        self._books = arrays["books"].astype(np.float32)  # (order - 1, LEVELS): log-probabilities
        self._weights = arrays["weights"].astype(np.float32)  # (order - 1, LEVELS): back-off weights, logs
        self._backoffs = self._weights[0][arrays["weights_1"]]
        self.size = len(self.unigrams)
        self._bigrams = np.zeros(self.size * self.size, np.uint8)
        self._bigram_weights = np.zeros(self.size * self.size, np.uint8)
        entries = list(self._unpack(arrays))
        self._entries = np.sort(np.concatenate(entries)) if entries else np.zeros(0, np.uint64)
        self._starts = _bucket_starts(self._entries)
        self._entries = np.append(self._entries, np.uint64(0))  # what may be looked at beyond the last bucket

    @property
    def history(self) -> int:
        """How many words back the model looks."""
        return len(self._books)

    @property
    def ngrams(self) -> int:
        """How many of two words and more."""
        return int(np.count_nonzero(self._bigrams)) + len(self._entries) - 1

    def log_probs(self, histories: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Log-probabilities of words after histories.

        Args:
            histories: (N, history) int, oldest first; 0 where the sentence has not begun.
            words: (N, K) int; 0 asks for the end of the sentence.

        Returns:
            (N, K) float32.
        """
        last, followers = histories[:, -1].astype(np.int64), words.astype(np.uint64)
        codes = self._bigrams[(last * self.size)[:, None] + words]
        result = np.where(codes, self._books[0][codes], self.unigrams[words] + self._backoffs[last][:, None])
        known, context = codes > 0, last.astype(np.uint64)
        for order in range(3, self.history + 2):
            newest = histories[:, self.history + 2 - order :].astype(np.uint64)
            context = _hashed(histories[:, self.history + 1 - order].astype(np.uint64), newest)
            weights = self._context_codes(histories, context, order - 1)
            result += self._weights[order - 2][weights][:, None]
            rows, columns = np.nonzero(known & (weights > 0)[:, None])
            codes, _ = self._find(_extended(context[rows], followers[rows, columns]))
            found = codes > 0
            rows, columns = rows[found], columns[found]
            result[rows, columns] = self._books[order - 2][codes[found]]
            known = np.zeros_like(known)
            known[rows, columns] = True
        return result

    def _context_codes(self, histories: np.ndarray, hashed: np.ndarray, order: int) -> np.ndarray:
        """Codes of the back-off weights of contexts of ``order`` words, (N,); 0: nothing follows."""
        if order == 2:
            return self._bigram_weights[histories[:, -2].astype(np.int64) * self.size + histories[:, -1]]
        return self._find(hashed)[1]

    def _find(self, hashed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both codes of n-grams (n,) by their hashes, 0 where there is none."""
        bucket = (hashed >> np.uint64(64 - _BUCKET_BITS)).astype(np.int64)
        place, end = self._starts[bucket], self._starts[bucket + 1]
        wanted = hashed >> _HASH_SHIFT
        result = np.zeros(len(hashed), np.uint64)
        open_ = np.flatnonzero(place < end)
        place, end, wanted = place[open_], end[open_], wanted[open_]
        while len(open_):
            entry = self._entries[place]
            stored = entry >> _HASH_SHIFT
            same = stored == wanted
            result[open_[same]] = entry[same]
            place += 1
            left = np.flatnonzero((stored < wanted) & (place < end))
            open_, place, end, wanted = open_[left], place[left], end[left], wanted[left]
        return ((result >> np.uint64(_CODE_BITS)) & _CODE).astype(np.uint8), (result & _CODE).astype(np.uint8)

    def _unpack(self, arrays: Mapping[str, np.ndarray]) -> Iterator[np.ndarray]:
        """Fill the open bigrams; yield the entries of the longer n-grams."""
        # Of each n-gram of the order below: its end's place in the order below that, its first follower's
        # place, its hash.
        ends, firsts = np.zeros(self.size, np.int64), None
        hashes = np.arange(self.size, dtype=np.uint64)
        words = np.arange(self.size)
        by_rank = arrays["by_rank"].astype(np.int64)  # words, the most probable first
        for order in range(2, self.history + 2):
            counts = arrays[f"counts_{order}"]
            context = np.repeat(np.arange(len(counts)), counts)
            rank = arrays[f"ranks_low_{order}"] + (arrays[f"ranks_high_{order}"].astype(np.int64) << 8)
            codes = _rising(arrays[f"steps_{order}"], counts)
            weights = arrays[f"weights_{order}"] if order <= self.history else np.zeros(len(rank), np.uint8)
            if order == 2:
                ends = by_rank[rank]
                last = ends
                places = words[context] * self.size + last
                self._bigrams[places], self._bigram_weights[places] = codes, weights
                hashes = _hashed(context.astype(np.uint64), last[:, None].astype(np.uint64))
            else:
                ends = firsts[ends[context]] + rank  # of the n-gram without its first word
                last = last[ends]
                hashes = _extended(hashes[context], last.astype(np.uint64))
                packed = (codes.astype(np.uint64) << np.uint64(_CODE_BITS)) | weights.astype(np.uint64)
                yield (hashes >> _HASH_SHIFT << _HASH_SHIFT) | packed
            firsts = np.cumsum(counts, dtype=np.int64) - counts


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
    for order, (below, table) in enumerate(zip(tables, tables[1:], strict=False), start=2):
        book, arrays[f"weights_{order - 1}"] = _weight_book(below.backoffs[disk])
        weights.append(book)
        context = np.searchsorted(below.keys, table.keys >> bits)
        end = np.searchsorted(below.keys, table.keys & ((1 << bits * (order - 1)) - 1))
        position = np.empty(len(disk), np.int64)
        position[disk] = np.arange(len(disk))
        book, codes = _code_book(table.log_probs)
        books.append(book)
        ranks = sibling[end]
        by_place = np.lexsort((ranks, -codes.astype(np.int64), position[context]))
        counts = np.bincount(position[context], minlength=len(below.keys))
        starts = np.cumsum(counts) - counts
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
    fallen = np.cumsum(steps, dtype=np.int64)
    first = np.cumsum(counts, dtype=np.int64) - counts
    before = np.append(0, fallen)[first]  # of all groups ahead
    return (LEVELS - 1 - (fallen - np.repeat(before, counts))).astype(np.uint8)


def _code_book(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """LEVELS levels (the first isn't used) that lie as near to the values as Lloyd's algorithm brings them.

    Lloyd, "Least squares quantization in PCM" (IEEE Transactions on Information Theory 28, 1982).

    Returns:
        the levels, ascending, (LEVELS,) float32, and the number of each value's, (n,) uint8.
    """
    if not len(values):
        return np.zeros(LEVELS, np.float32), np.zeros(0, np.uint8)
    counts, edges = np.histogram(values, _HISTOGRAM)
    centres = (edges[:-1] + edges[1:]) / 2
    levels = np.linspace(edges[0], edges[-1], LEVELS - 1)
    for _ in range(_LLOYD_ROUNDS):
        nearest = np.searchsorted((levels[:-1] + levels[1:]) / 2, centres)
        mass = np.bincount(nearest, counts, minlength=len(levels))
        sums = np.bincount(nearest, counts * centres, minlength=len(levels))
        levels = np.where(mass > 0, sums / np.maximum(mass, 1), levels)
    codes = np.searchsorted((levels[:-1] + levels[1:]) / 2, values) + 1
    return np.append(0.0, levels).astype(np.float32), codes.astype(np.uint8)


def _weight_book(backoffs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same for the weights of contexts: level 0 stands for log 1, of those that nothing follows."""
    used = np.flatnonzero(backoffs)
    book, found = _code_book(backoffs[used])
    book[0] = 0.0
    codes = np.zeros(len(backoffs), np.uint8)
    codes[used] = found
    return book, codes


def _hashed(first: np.ndarray, following: np.ndarray) -> np.ndarray:
    """Hashes (n,) of n-grams: first words (n,), all others (n, order - 1), uint64."""
    result = first
    for column in following.T:
        result = _extended(result, column)
    return result


def _extended(hashed: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Hashes of n-grams with one word more."""
    result = (hashed * _SPREAD + words + np.uint64(1)) * _MIX
    return result ^ (result >> np.uint64(31))


def _bucket_starts(entries: np.ndarray) -> np.ndarray:
    """Where in sorted entries each bucket begins, (buckets + 1,) int64."""
    counts = np.bincount(
        (entries >> np.uint64(64 - _BUCKET_BITS)).astype(np.int64), minlength=1 << _BUCKET_BITS
    )
    return np.append(0, np.cumsum(counts))
