"""A unigram model of words from a dictionary with frequencies, which scores the words that hanzi form.

The score of a sequence of hanzi is that of its best segmentation into words,

    max over segmentations Σ log P(word),

where every hanzi is a word too. This complements an n-gram model of hanzi, which prefers what occurs in its
training texts: the dictionary also has words that these texts do not contain. For each hypothesis the search
keeps the scores of the best segmentations of its last few prefixes; so a new hanzi needs one look-up for each
word length (the Viterbi algorithm).

The file stores the words as a trie, with a small number for each node: the difference between the frequency
rank of its hanzi and that of its previous sibling.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from model_language.array_files import load_part
from model_language.ngram.compact_tables import (
    LEVELS,
    HashTable,
    PairSet,
    code_book,
    extend_hashes,
    group_steps,
    undo_group_steps,
)
from model_language.vocabulary.symbols import PAD_ID, UNKNOWN_ID, Symbols
from utils.arrays import pad_rows

LONGEST_WORD = 4
"""Longer words hardly ever matter, because their parts are words too."""
# P(word) is proportional to (count + _UNSEEN) ^ _POWER.
_UNSEEN, _POWER = 0.5, 0.9
_CONTINUED = np.uint32(1)  # flag below a node's code: longer words begin with it


class WordUnigram:
    """Scores the words that hanzi form, with a state for each path of a search.

    Args:
        arrays: the result of :func:`pack_words`.
        weight: factor of the log-probabilities.

    Attributes:
        size: number of hanzi ids.
        reach: number of preceding hanzi that a word's last one depends on.

    Raises:
        KeyError, IndexError, ValueError: the arrays are unsuitable; :func:`read_words` names the file.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], weight: float = 1.0):
        self._alone = np.float32(weight) * arrays["alone"].astype(np.float32)
        self._book = np.float32(weight) * arrays["book"].astype(np.float32)
        self.size = len(self._alone)
        nodes = list(_nodes(arrays))
        self.reach = len(nodes)
        self._table = HashTable(sum(len(values) for _, values in nodes), nodes)
        by_rank, counts = arrays["by_rank"].astype(np.int64), arrays["counts_2"]
        pairs = np.repeat(by_rank * self.size, counts) + by_rank.take(_ranks(arrays, 2))
        self._beginnings = PairSet(pairs, self.size)
        self._continued = PairSet(pairs[nodes[0][1] & _CONTINUED > 0], self.size)

    def initial_states(self, paths: int) -> np.ndarray:
        """States of empty paths, (paths, reach + 1) float32."""
        states = np.full((paths, self.reach + 1), -np.inf, np.float32)
        states[:, 0] = 0.0
        return states

    def gains(self, past: np.ndarray, states: np.ndarray, rows: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """What paths gain by one more hanzi.

        Args:
            past: (N, n) int, the last hanzi of each path, oldest first, n ≥ reach; 0 before the beginning.
            states: (N, reach + 1).
            rows: (E,) int, the path that each hanzi extends.
            tokens: (E,) int, hanzi ids; 0 gains nothing.

        Returns:
            (E,) log-scores.

        Column i of ``states`` is the score of the path without its last i hanzi, minus that of the path.
        """
        result = self._alone.take(tokens)
        last = past[:, -1].astype(np.int64)
        possible = self._beginnings.find((last * self.size).take(rows) + tokens).nonzero()[0]
        row = rows.take(possible)
        indices, sources, hashes = [possible], [row], [last.take(row).astype(np.uint64)]
        for length in range(3, self.reach + 2):
            hashed, continued = self._prefixes(past[:, 1 - length :])
            possible = continued.take(rows).nonzero()[0]
            row = rows.take(possible)
            indices, sources, hashes = [*indices, possible], [*sources, row], [*hashes, hashed.take(row)]
        # One look-up for words of all lengths.
        before = np.repeat(np.arange(1, self.reach + 1), [len(part) for part in indices])
        index, source, hashed = (np.concatenate(parts) for parts in (indices, sources, hashes))
        codes = self._table.find(extend_hashes(hashed, tokens.take(index))) >> _CONTINUED
        found = codes.nonzero()[0]
        scores = self._book.take(codes.take(found)) + states[source.take(found), before.take(found)]
        np.maximum.at(result, index.take(found), scores)
        return result

    def _prefixes(self, past: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Hashes of hanzi sequences (N, length ≥ 2), and whether longer words begin with them."""
        continued = self._continued.find(past[:, 0].astype(np.int64) * self.size + past[:, 1])
        paths = continued.nonzero()[0]
        hashed, hashes = past[:, 0].take(paths), np.zeros(len(past), np.uint64)
        for column in range(1, past.shape[1]):
            hashed = extend_hashes(hashed, past[:, column].take(paths))
        hashes[paths] = hashed
        if past.shape[1] > 2:
            continued[paths] = self._table.find(hashed) & _CONTINUED
        return hashes, continued

    def next_states(
        self, states: np.ndarray, gained: np.ndarray, ended: np.ndarray | None = None
    ) -> np.ndarray:
        """States (N, reach + 1) and the gains (N,) of one more hanzi → the states after it.

        ``ended``, (N,) bool: where the hanzi is known to end a word, so that none goes on.
        """
        result = np.zeros_like(states)
        np.subtract(states[:, :-1], gained[:, None], out=result[:, 1:])
        if ended is not None:
            result[ended, 1:] = -np.inf
        return result

    def scores(self, sequences: np.ndarray, word_ends: np.ndarray | None = None) -> np.ndarray:
        """Scores of whole paths: (N, L) int, 0 after the end of a path → (N,) float64.

        ``word_ends``, (N, L) bool: see :attr:`model_language.search.grid.Grid.word_ends`.
        """
        rows = np.arange(len(sequences))
        begun = np.pad(sequences, ((0, 0), (self.reach, 0)))
        states, total = self.initial_states(len(sequences)), np.zeros(len(sequences))
        for position in range(sequences.shape[1]):
            past = begun[:, position : position + self.reach]
            gained = self.gains(past, states, rows, sequences[:, position])
            ended = None if word_ends is None else word_ends[:, position]
            states = self.next_states(states, gained, ended)
            total += gained
        return total

    def word_starts(self, ids: np.ndarray) -> list[int]:
        """Positions at which the words of the best segmentation of hanzi ids (L,) begin."""
        ids = ids.astype(np.int64)
        scores, hashes = [self._alone.take(ids)], ids.astype(np.uint64)  # of the words of 1, 2 … hanzi
        for length in range(2, self.reach + 2):
            hashes = extend_hashes(hashes[:-1], ids[length - 1 :])
            codes = self._table.find(hashes) >> _CONTINUED
            scores.append(np.where(codes > 0, self._book.take(codes), -np.inf))
        best = [(0.0, 0)]  # of each beginning: its score, and the position of its last word
        for end in range(1, len(ids) + 1):
            firsts = range(max(0, end - len(scores)), end)
            best.append(max((best[first][0] + scores[end - first - 1][first], first) for first in firsts))
        starts, end = [], len(ids)
        while end:
            end = best[end][1]
            starts.append(end)
        return starts[::-1]


def read_words(path: str | Path, weight: float) -> WordUnigram:
    """The words of an ``.npz`` file with the arrays of :func:`pack_words`.

    Raises:
        RunError: the file is missing or damaged.
    """
    return load_part(path, "the words", lambda arrays: WordUnigram(arrays, weight))


def pack_words(uses: Mapping[str, int], symbols: Symbols) -> dict[str, np.ndarray]:
    """Pack words; their probabilities are rounded to a code book.

    Args:
        uses: word → number of uses. Words with hanzi outside the vocabulary, and words longer than
            :data:`LONGEST_WORD`, are omitted.
        symbols: the vocabulary; a hanzi that is not a word counts as a word without uses.

    Returns:
        The arrays of :class:`WordUnigram`.
    """
    size, known = len(symbols.hanzi), symbols.hanzi.index
    ids = {token: known(token) for token in symbols.hanzi.tokens if len(token) == 1}
    kept = {
        word: times for word, times in uses.items() if len(word) <= LONGEST_WORD and ids.keys() >= set(word)
    }
    single = np.zeros(size)
    for token, number in ids.items():
        single[number] = kept.get(token, 0)
    longer = [word for word in kept if len(word) > 1]
    weights = (np.append(single, [kept[word] for word in longer]) + _UNSEEN) ** _POWER
    logs = np.log(weights / weights.sum())
    alone, of_words = logs[:size], logs[size:]
    by_rank = np.argsort(-alone, kind="stable")
    rank = np.empty(size, np.int64)
    rank[by_rank] = np.arange(size)
    book, codes = code_book(of_words)
    alone[[PAD_ID, UNKNOWN_ID]] = 0.0, alone.min()
    arrays = {"alone": alone.astype(np.float16), "by_rank": by_rank.astype(np.uint16), "book": book}
    lengths = np.array([len(word) for word in longer], np.int64)
    of_hanzi = [[rank[ids[character]] for character in word] for word in longer]
    ranks = pad_rows(of_hanzi, LONGEST_WORD, dtype=np.int64)
    below = np.arange(size)  # nodes of the shorter length, each a number made of its ranks
    keys = ranks[:, 0]
    for length in range(2, LONGEST_WORD + 1):
        keys = keys * size + ranks[:, length - 1]
        nodes = np.unique(keys[lengths >= length])
        counts = np.bincount(np.searchsorted(below, nodes // size), minlength=len(below))
        node_codes = np.zeros(len(nodes), np.uint8)
        ends = lengths == length
        node_codes[np.searchsorted(nodes, keys[ends])] = codes[ends]
        steps = group_steps(nodes % size, counts)
        arrays[f"counts_{length}"] = counts.astype(np.uint16)
        arrays[f"steps_low_{length}"] = (steps & 255).astype(np.uint8)
        arrays[f"steps_high_{length}"] = (steps >> 8).astype(np.uint8)
        arrays[f"codes_{length}"] = node_codes
        below = nodes
    return arrays


def _nodes(arrays: Mapping[str, np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Hashes and values of all nodes of two hanzi and more, length by length."""
    by_rank = arrays["by_rank"].astype(np.int64)
    hashes = by_rank
    longest = max(int(name.rpartition("_")[2]) for name in arrays if name.startswith("counts_"))
    for length in range(2, longest + 1):
        counts = arrays[f"counts_{length}"].astype(np.int64)
        codes = arrays[f"codes_{length}"]
        if codes.max(initial=0) >= LEVELS or counts.sum() != len(codes):
            raise ValueError(f"the arrays of words of {length} hanzi do not fit together")
        hashes = extend_hashes(np.repeat(hashes, counts), by_rank.take(_ranks(arrays, length)))
        values = codes.astype(np.uint32) << _CONTINUED
        if length < longest:
            values |= (arrays[f"counts_{length + 1}"] > 0).astype(np.uint32)
        yield hashes, values


def _ranks(arrays: Mapping[str, np.ndarray], length: int) -> np.ndarray:
    """Frequency ranks of the last hanzi of all nodes of a length."""
    steps = arrays[f"steps_low_{length}"] + (arrays[f"steps_high_{length}"].astype(np.int64) << 8)
    return undo_group_steps(steps, arrays[f"counts_{length}"])
