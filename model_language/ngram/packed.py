"""Pruned Kneser–Ney tables in; some 12 bits an n-gram on disk, quick look-ups in memory, out.

On disk an n-gram is told by what is known of it already. A kept n-gram's end, one word shorter, is kept too;
so the last word of ``a b c`` is one of those that follow ``b``, and its place among them, the most probable
first, is a small number. Beside it stands a position in a code book of log-probabilities; those of one
context fall, and only the steps are kept. zlib packs such numbers to almost their entropy.

In memory n-grams are found by their hashes. Bigrams, which are asked for most, lie open beside, a byte a pair
of words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from model_language.ngram.code_book import LEVELS, code_book
from model_language.ngram.code_table import VALUE_BITS, CodeTable, extended
from model_language.ngram.kneser_ney import NgramTable, bits_needed
from utils import files
from utils.errors import RunError
from utils.files import replacing

_CODE_BITS = VALUE_BITS // 2  # an entry's value: code of the probability, code of the back-off weight
_CODE = np.uint32(LEVELS - 1)
_PART = 1 << 19  # n-grams that are unpacked at a time: memory


class PackedNgrams:
    """P(word | words before), see :class:`model_language.search.grid.HistoryModel`.

    Args:
        arrays: of :func:`pack`.

    Attributes:
        size: ids are below it.
        ngrams: how many of two words and more.

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
        self._tables = list(self._unpacked(arrays))  # from 2-grams on
        self.ngrams = sum(len(arrays[f"steps_{order}"]) for order in range(2, self.history + 2))

    @property
    def history(self) -> int:
        """How many words back the model looks."""
        return len(self._books)

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
        known = codes.nonzero()[0]  # places of the n-grams of the order below
        for order in range(3, self.history + 2):
            context, weights = self._contexts(histories[:, self.history + 1 - order :])
            result += self._weights[order - 2].take(weights).take(rows)
            after = rows.take(known)
            followed = weights.take(after).nonzero()[0]
            known, after = known.take(followed), after.take(followed)
            hashes = extended(context.take(after), words.take(known))
            found = self._tables[order - 2].find(hashes) >> _CODE_BITS
            there = found.nonzero()[0]
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

    def _unpacked(self, arrays: Mapping[str, np.ndarray]) -> Iterator[CodeTable]:
        """Fill the open bigrams; give the look-up of the n-grams of each order, from 2 on."""
        by_rank = arrays["by_rank"].astype(np.int32)  # words, the most probable first
        counts, rank, codes, weights = self._stored(arrays, 2)
        words = _Known(np.arange(self.size), by_rank, np.zeros(self.size, np.int32), np.zeros(1, np.int32))
        hashes, last, _ = (np.concatenate(one) for one in zip(*_followers(words, counts, rank), strict=True))
        known = _Known(hashes, last, last, np.cumsum(counts, dtype=np.int32) - counts)
        for previous, (first, count) in enumerate(zip(known.firsts.tolist(), counts.tolist(), strict=True)):
            here = slice(first, first + count)
            self._bigrams[previous * self.size + last[here]] = codes[here]
        followed = weights.nonzero()[0]  # all else is found in the open ones
        parts = np.array_split(followed, len(followed) // _PART + 1)
        yield CodeTable(len(followed), ((hashes.take(one), weights.take(one)) for one in parts))
        for order in range(3, self.history + 2):
            counts, rank, codes, weights = self._stored(arrays, order)
            values = (codes.astype(np.uint16) << _CODE_BITS) | weights
            parts = _followers(known, counts, rank)
            if order <= self.history:
                found = [np.concatenate(one) for one in zip(*parts, strict=True)]
                known = _Known(*found, np.cumsum(counts, dtype=np.int32) - counts)
                parts = iter([(known.hashes, known.last, known.ends)])
            yield CodeTable(len(rank), _with_values(parts, values))

    def _stored(self, arrays: Mapping[str, np.ndarray], order: int) -> tuple[np.ndarray, ...]:
        """Of an order: how many n-grams follow each of the one below; ranks, codes, codes of weights."""
        counts = arrays[f"counts_{order}"]
        rank = arrays[f"ranks_high_{order}"].astype(np.uint16) << 8
        rank |= arrays[f"ranks_low_{order}"]
        codes = _rising(arrays[f"steps_{order}"], counts)
        weights = arrays[f"weights_{order}"] if order <= self.history else np.zeros(len(rank), np.uint8)
        if max(codes.max(initial=0), weights.max(initial=0)) >= LEVELS:
            raise ValueError(f"a code of order {order} is in no code book")
        return counts, rank, codes, weights


@dataclass(frozen=True)
class _Known:
    """The n-grams of an order while the next one is unpacked, all (N,) in the order of the file.

    Attributes:
        hashes: see :func:`model_language.ngram.code_table.extended`.
        last: their last words.
        ends: places of their ends, without the first word, in the order below; of bigrams the last words.
        firsts: where their followers begin.
    """

    hashes: np.ndarray
    last: np.ndarray
    ends: np.ndarray
    firsts: np.ndarray


def _followers(
    known: _Known, counts: np.ndarray, rank: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Hashes, last words and ends of the n-grams one word longer, some contexts after the other."""
    begins = np.append(0, np.cumsum(counts, dtype=np.int64))
    cuts = np.searchsorted(begins, np.arange(0, len(rank) + _PART, _PART))
    for start, stop in pairwise(np.unique(np.minimum(cuts, len(counts)))):
        here = counts[start:stop]
        ends = np.repeat(known.firsts.take(known.ends[start:stop]), here) + rank[begins[start] : begins[stop]]
        last = known.last.take(ends)
        yield extended(np.repeat(known.hashes[start:stop], here), last), last, ends


def _with_values(
    parts: Iterable[tuple[np.ndarray, ...]], values: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Hashes of each part beside its share of the values."""
    at = 0
    for hashes, *_ in parts:
        yield hashes, values[at : at + len(hashes)]
        at += len(hashes)


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
