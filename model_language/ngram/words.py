"""A dictionary's words and how often each is used in; what the hanzi of a path are worth as words, out.

A path is worth what its best division into words is,

    max over divisions Σ log P(word),

where every hanzi is a word too. N-grams of hanzi know which follow each other in their texts; this knows
which belong together, also where the texts never had them. The search carries along, for each hypothesis,
what its best division was worth some hanzi ago; so a new hanzi costs one look-up for each length of word.

On disk the words are a tree, a small number a node: how far, by frequency, its hanzi is from the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from model_language.ngram.code_book import LEVELS, code_book
from model_language.ngram.code_table import CodeTable, extended
from model_language.vocabulary.symbols import PAD_ID, UNKNOWN_ID, Symbols
from utils import files
from utils.errors import RunError
from utils.files import replacing

WORDS_FILE = "words.npz"
LONGEST = 4
"""Longer words hardly ever decide anything: their parts are words as well."""
# P(word) is proportional to (use + _UNUSED) ^ _POWER.
_UNUSED, _POWER = 0.5, 0.9
_BITS = (1 << np.arange(8)).astype(np.uint8)
_GOES_ON = np.uint32(1)  # beside a node's code: longer words begin with it


class WordUnigram:
    """Rates the hanzi of paths as words, see :class:`model_language.search.grid.PathModel`.

    Args:
        arrays: of :func:`pack_words`.
        weight: factor of the log-probabilities.

    Attributes:
        size: hanzi ids are below it.
        reach: hanzi back that a word's last one depends on.

    Raises:
        KeyError, IndexError, ValueError: the arrays are not; :func:`read_words` tells the user.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], weight: float = 1.0):
        self._alone = np.float32(weight) * arrays["alone"].astype(np.float32)
        self._book = np.float32(weight) * arrays["book"].astype(np.float32)
        self.size = len(self._alone)
        nodes = list(_nodes(arrays))
        self.reach = len(nodes)
        self._table = CodeTable(sum(len(values) for _, values in nodes), nodes)
        by_rank, counts = arrays["by_rank"].astype(np.int64), arrays["counts_2"]
        pairs = np.repeat(by_rank * self.size, counts) + by_rank.take(_ranks(arrays, 2))
        self._begin = _Pairs(pairs, self.size)
        self._go_on = _Pairs(pairs[nodes[0][1] & _GOES_ON > 0], self.size)

    def begin(self, paths: int) -> np.ndarray:
        """The state of so many paths without a hanzi: (paths, reach + 1) float32."""
        state = np.full((paths, self.reach + 1), -np.inf, np.float32)
        state[:, 0] = 0.0
        return state

    def gains(self, past: np.ndarray, state: np.ndarray, rows: np.ndarray, words: np.ndarray) -> np.ndarray:
        """What paths gain by one hanzi more.

        Args:
            past: (N, n) int, last hanzi of each path, oldest first, n ≥ reach; 0 where it has not begun.
            state: (N, reach + 1), how much less the path was worth 0, 1, … hanzi ago.
            rows: (E,) int, which of the paths goes on.
            words: (E,) int, with which hanzi; 0 gains nothing.

        Returns:
            (E,) float32.
        """
        result = self._alone.take(words)
        last = past[:, -1].astype(np.int64)
        asked = self._begin.find((last * self.size).take(rows) + words).nonzero()[0]
        row = rows.take(asked)
        places, sources, hashes = [asked], [row], [last.take(row).astype(np.uint64)]
        for length in range(3, self.reach + 2):
            hashed, goes_on = self._prefixes(past[:, 1 - length :])
            asked = goes_on.take(rows).nonzero()[0]
            row = rows.take(asked)
            places, sources, hashes = [*places, asked], [*sources, row], [*hashes, hashed.take(row)]
        # One look-up for words of all lengths.
        before = np.repeat(np.arange(1, self.reach + 1), [len(one) for one in places])
        place, source, hashed = (np.concatenate(parts) for parts in (places, sources, hashes))
        codes = self._table.find(extended(hashed, words.take(place))) >> _GOES_ON
        found = codes.nonzero()[0]
        worth = self._book.take(codes.take(found)) + state[source.take(found), before.take(found)]
        np.maximum.at(result, place.take(found), worth)
        return result

    def _prefixes(self, past: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Hashes of hanzi side by side (N, length ≥ 2), and whether longer words begin with them."""
        goes_on = self._go_on.find(past[:, 0].astype(np.int64) * self.size + past[:, 1])
        paths = goes_on.nonzero()[0]
        hashed, hashes = past[:, 0].take(paths), np.zeros(len(past), np.uint64)
        for place in range(1, past.shape[1]):
            hashed = extended(hashed, past[:, place].take(paths))
        hashes[paths] = hashed
        if past.shape[1] > 2:
            goes_on[paths] = self._table.find(hashed) & _GOES_ON
        return hashes, goes_on

    def follow(self, state: np.ndarray, gained: np.ndarray) -> np.ndarray:
        """The states (N, reach + 1) of paths that were in a state and gained (N,) by a hanzi more."""
        result = np.zeros_like(state)
        np.subtract(state[:, :-1], gained[:, None], out=result[:, 1:])
        return result

    def worth(self, sequences: np.ndarray) -> np.ndarray:
        """What whole paths are worth: (N, L) int, 0 beyond a path's end → (N,) float64."""
        rows = np.arange(len(sequences))
        begun = np.pad(sequences, ((0, 0), (self.reach, 0)))
        state, total = self.begin(len(sequences)), np.zeros(len(sequences))
        for place in range(sequences.shape[1]):
            gained = self.gains(begun[:, place : place + self.reach], state, rows, sequences[:, place])
            state = self.follow(state, gained)
            total += gained
        return total


def read_words(path: str | Path, weight: float) -> WordUnigram:
    """The words of a file that :func:`save_words` wrote.

    Raises:
        RunError: the file is missing or damaged.
    """
    try:
        return WordUnigram(files.read_arrays(path), weight)
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise RunError(f"can't read the words ({error})", where=path, hint="copy the run again") from error


def save_words(path: str | Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write what :func:`pack_words` made into one ``.npz`` file."""
    with replacing(path) as temporary:
        np.savez_compressed(temporary, **arrays)


def pack_words(uses: Mapping[str, int], symbols: Symbols) -> dict[str, np.ndarray]:
    """Pack words; their probabilities are rounded to a code book.

    Args:
        uses: word → how often it is used. Those with hanzi beyond the vocabulary, and those longer than
            :data:`LONGEST`, are left out.
        symbols: the vocabulary; a hanzi that is no word counts as one that is never used.

    Returns:
        the arrays of :class:`WordUnigram`.
    """
    size, known = len(symbols.hanzi), symbols.hanzi.index
    ids = {token: known(token) for token in symbols.hanzi.tokens if len(token) == 1}
    kept = {word: times for word, times in uses.items() if len(word) <= LONGEST and ids.keys() >= set(word)}
    single = np.zeros(size)
    for token, number in ids.items():
        single[number] = kept.get(token, 0)
    longer = [word for word in kept if len(word) > 1]
    weights = (np.append(single, [kept[word] for word in longer]) + _UNUSED) ** _POWER
    logs = np.log(weights / weights.sum())
    alone, of_words = logs[:size], logs[size:]
    by_rank = np.argsort(-alone, kind="stable")
    rank = np.empty(size, np.int64)
    rank[by_rank] = np.arange(size)
    book, codes = code_book(of_words)
    alone[[PAD_ID, UNKNOWN_ID]] = 0.0, alone.min()
    arrays = {"alone": alone.astype(np.float16), "by_rank": by_rank.astype(np.uint16), "book": book}
    lengths = np.array([len(word) for word in longer], np.int64)
    spelt = np.zeros((len(longer), LONGEST), np.int64)  # ranks of their hanzi
    for row, word in zip(spelt, longer, strict=True):
        row[: len(word)] = [rank[ids[character]] for character in word]
    below = np.arange(size)  # nodes of the length before, each a number made of its ranks
    keys = spelt[:, 0]
    for length in range(2, LONGEST + 1):
        keys = keys * size + spelt[:, length - 1]
        nodes = np.unique(keys[lengths >= length])
        counts = np.bincount(np.searchsorted(below, nodes // size), minlength=len(below))
        at = np.zeros(len(nodes), np.uint8)
        ends = lengths == length
        at[np.searchsorted(nodes, keys[ends])] = codes[ends]
        steps = _steps(nodes % size, counts)
        arrays[f"counts_{length}"] = counts.astype(np.uint16)
        arrays[f"steps_low_{length}"] = (steps & 255).astype(np.uint8)
        arrays[f"steps_high_{length}"] = (steps >> 8).astype(np.uint8)
        arrays[f"codes_{length}"] = at
        below = nodes
    return arrays


def _steps(ranks: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Ranks that rise within each group → the first one, then from one to the next."""
    steps = np.diff(ranks, prepend=0)
    first = (np.cumsum(counts) - counts)[counts > 0]
    steps[first] = ranks[first]
    return steps


class _Pairs:
    """A bit for each pair of hanzi, eight a byte: most pairs begin no word, and are asked for most."""

    def __init__(self, numbers: np.ndarray, size: int):
        self._bytes = np.zeros(size * size // 8 + 1, np.uint8)
        np.bitwise_or.at(self._bytes, numbers >> 3, _BITS.take(numbers & 7))

    def find(self, numbers: np.ndarray) -> np.ndarray:
        """Of pairs (n,), first · size + second: whether their bit is set, (n,) uint8, 0 if not."""
        return self._bytes.take(numbers >> 3) & _BITS.take(numbers & 7)


def _nodes(arrays: Mapping[str, np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Hashes and values of all nodes of two hanzi and more, length by length."""
    by_rank = arrays["by_rank"].astype(np.int64)
    hashes = by_rank
    longest = max(int(name.rpartition("_")[2]) for name in arrays if name.startswith("counts_"))
    for length in range(2, longest + 1):
        counts = arrays[f"counts_{length}"].astype(np.int64)
        codes = arrays[f"codes_{length}"]
        if codes.max(initial=0) >= LEVELS or counts.sum() != len(codes):
            raise ValueError(f"words of {length} hanzi don't fit together")
        hashes = extended(np.repeat(hashes, counts), by_rank.take(_ranks(arrays, length)))
        values = codes.astype(np.uint32) << _GOES_ON
        if length < longest:
            values |= (arrays[f"counts_{length + 1}"] > 0).astype(np.uint32)
        yield hashes, values


def _ranks(arrays: Mapping[str, np.ndarray], length: int) -> np.ndarray:
    """Ranks of the last hanzi of all nodes of a length: the inverse of :func:`_steps`."""
    counts = arrays[f"counts_{length}"].astype(np.int64)
    steps = arrays[f"steps_low_{length}"] + (arrays[f"steps_high_{length}"].astype(np.int64) << 8)
    climbed = np.cumsum(steps)
    first = (np.cumsum(counts) - counts)[counts > 0]
    return climbed - np.repeat(climbed[first] - steps[first], counts[counts > 0])
