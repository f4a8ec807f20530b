"""Confusion networks of syllables in; the hanzi that are best with all that is known, out.

Looked for is the path through the slots, and the hanzi for it, with the highest

    log P(path) + weight · language + bonus · syllables + what user words earn

An n-gram converter rates hanzi and readings one after the other: its search goes through the network itself
(language = log P(hanzi) + log P(syllables | hanzi)). A network rates each position by the whole sentence: it
converts the n best sequences of syllables, and the best sum wins (language = log P(hanzi | syllables)). These
sequences are found with a language model of syllables if there is one, which then also counts in the sum;
else by the acoustic model alone. A converter with an n-gram model of hanzi inside is used in the second way.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from model_language.decoding import HistoryModel
from model_language.guided import GuidedConverter
from model_language.ngram import READINGS
from model_language.syllable_ngram import SyllableNgram
from model_language.symbols import PAD_ID, UNKNOWN_ID
from model_language.user_words import UserWord, UserWords
from utils.confusion_network import NOTHING, ConfusionNetwork

SEQUENCES = 40  # of syllables that a network converts for each utterance
BEAM = 32


@dataclass(frozen=True)
class JointWeights:
    """How much each voice counts beside the acoustic model's 1.

    Attributes:
        language: factor of the converter's log-probabilities.
        syllables: factor of those of a language model of syllables.
        bonus: for each syllable: language models like short sentences.
    """

    language: float
    syllables: float
    bonus: float


@dataclass(frozen=True)
class JointReading:
    """One reading of an utterance.

    Attributes:
        pinyin: canonical syllables.
        hanzi: as many characters.
        score: the sum that is looked for the highest of.
        slots: of the network, from which each came.
        confidence: of each character: the share of the readings found, by e^score, that have it there.
    """

    pinyin: tuple[str, ...]
    hanzi: str
    score: float
    slots: tuple[int, ...]
    confidence: tuple[float, ...] = ()


class JointSearch:
    """Finds the best hanzi for confusion networks.

    Args:
        converter: with or without user words.
        weights: of the voices.
        syllables: a language model of syllables, for networks that rate whole sentences.
        beam: hypotheses kept after each slot.
        sequences: of syllables that such a network converts.
    """

    def __init__(
        self,
        converter: GuidedConverter,
        weights: JointWeights,
        syllables: SyllableNgram | None = None,
        beam: int = BEAM,
        sequences: int = SEQUENCES,
    ):
        self._converter, self._weights, self._beam, self._sequences = converter, weights, beam, sequences
        self._syllables = syllables
        self._rows: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def read(self, networks: Sequence[ConfusionNetwork], n: int = 1) -> list[list[JointReading]]:
        """The ``n`` best readings of each network, best first; one at least."""
        if self._converter.converter.grid_part == READINGS:
            found = [self._through(network, n) for network in networks]
        else:
            found = self._converted(networks)
        return [_with_confidence(readings)[:n] for readings in found]

    def _through(self, network: ConfusionNetwork, n: int) -> list[JointReading]:
        """Search the network with a model of hanzi."""
        words, weights = _WordsInNetwork(network, self._converter.words), self._weights
        converter = self._converter.converter
        size = len(converter.symbols.hanzi)
        ids = {
            character: size + place for place, character in enumerate(words.hanzi(converter.symbols.hanzi))
        }
        characters = {number: character for character, number in ids.items()}

        def number(character: str) -> int:
            return ids[character] if character in ids else converter.symbols.hanzi.index(character)

        def rows(slot: int, syllable: str) -> tuple[np.ndarray, np.ndarray]:
            candidates, scores = self._candidates(syllable)
            wanted = [number(character) for character in words.at(slot, syllable)]
            new = [one for one in dict.fromkeys(wanted) if one not in candidates]
            if not new:
                return candidates, scores
            return np.append(candidates, new), np.append(scores, np.full(len(new), scores.min()))

        steps = {
            (slot, syllable, number(character)): found
            for (slot, syllable, character), found in words.steps.items()
        }
        paths = _search(
            network,
            rows,
            _Model(converter.history_model, weights.language, weights.bonus, size),
            steps,
            self._beam if n == 1 else max(self._beam, 4 * n),
            recombine=n == 1,
        )
        return [
            JointReading(
                path.syllables,
                "".join(characters.get(one) or converter.symbols.decode([one]) for one in path.tokens),
                path.score,
                path.slots,
            )
            for path in paths
        ]

    def _candidates(self, syllable: str) -> tuple[np.ndarray, np.ndarray]:
        """Hanzi ids of a syllable and their log-scores by themselves, both (K,)."""
        if syllable not in self._rows:
            grid = self._converter.converter.grid([[syllable]])
            used = grid.candidates[0, 0] > PAD_ID
            scores = grid.scores[0, 0, used].astype(np.float64)
            self._rows[syllable] = grid.candidates[0, 0, used], scores
        return self._rows[syllable]

    def _converted(self, networks: Sequence[ConfusionNetwork]) -> list[list[JointReading]]:
        """Convert the best sequences of each network."""
        sequences = [self._best_sequences(network) for network in networks]
        answers = iter(self._converter.best([one.pinyin for found in sequences for one in found]))
        result = []
        for found in sequences:
            readings = []
            for one in found:
                answer = next(answers)
                score = one.score + self._weights.language * answer.score
                readings.append(replace(one, hanzi=answer.hanzi, score=score))
            result.append(sorted(readings, key=lambda reading: -reading.score))
        return result

    def _best_sequences(self, network: ConfusionNetwork) -> list[JointReading]:
        weights, model = self._weights, self._syllables
        if model is None:
            return [
                JointReading(path.syllables, "", path.score + weights.bonus * len(path.syllables), path.slots)
                for path in itertools.islice(network.paths(), self._sequences)
            ]

        def rows(slot: int, syllable: str) -> tuple[np.ndarray, np.ndarray]:
            return model.ids([syllable]), np.zeros(1)

        rated = _Model(model, weights.syllables, weights.bonus, model.size)
        paths = _search(network, rows, rated, {}, self._sequences, recombine=False)
        return [JointReading(path.syllables, "", path.score, path.slots) for path in paths]


def _with_confidence(readings: Sequence[JointReading]) -> list[JointReading]:
    """Add to each reading how much of all probability has the same hanzi in the same slot."""
    scores = np.array([reading.score for reading in readings])
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    mass: dict[tuple[int, str], float] = {}
    for reading, share in zip(readings, shares.tolist(), strict=True):
        for at in zip(reading.slots, reading.hanzi, strict=True):
            mass[at] = mass.get(at, 0.0) + share
    return [
        replace(one, confidence=tuple(min(1.0, mass[at]) for at in zip(one.slots, one.hanzi, strict=True)))
        for one in readings
    ]


@dataclass(frozen=True)
class _Model:
    """A history model and how it counts; ids from ``size`` on are unknown to it."""

    model: HistoryModel
    weight: float
    bonus: float
    size: int

    def log_probs(self, histories: np.ndarray, words: np.ndarray) -> np.ndarray:
        return self.weight * self.model.log_probs(self._known(histories), self._known(words)).astype(float)

    def _known(self, ids: np.ndarray) -> np.ndarray:
        return np.where(ids < self.size, ids, UNKNOWN_ID)


# A word whose first so many characters have come: its number and how many.
_Active = frozenset[tuple[int, int]]
# (slot, syllable, token) → the words of which the token may be the next: number, characters before, word.
_Steps = dict[tuple[int, str, int], list[tuple[int, int, UserWord]]]


@dataclass(frozen=True)
class _Hypothesis:
    tokens: tuple[int, ...]
    syllables: tuple[str, ...]
    slots: tuple[int, ...]
    score: float
    active: _Active
    paid: float  # for the characters of words that aren't complete


def _search(
    network: ConfusionNetwork,
    rows: Callable[[int, str], tuple[np.ndarray, np.ndarray]],
    model: _Model,
    steps: _Steps,
    beam: int,
    recombine: bool,
) -> list[_Hypothesis]:
    """Beam search through a network.

    Args:
        network: slots.
        rows: (slot, syllable) → ids that it may become, and their log-scores, both (K,).
        model: rates ids by those before them.
        steps: user words.
        beam: hypotheses kept after each slot.
        recombine: of those that can't be told apart any more keep the best; else of equal ones only.

    Returns:
        the best, best first.
    """
    history = model.model.history
    kept = [_Hypothesis((), (), (), 0.0, frozenset(), 0.0)]
    for place, slot in enumerate(network.slots):
        options = [
            (syllable, log, *rows(place, syllable))
            for syllable, log in zip(slot.syllables, slot.log_posteriors, strict=True)
            if syllable != NOTHING
        ]
        grown: list[_Hypothesis] = []
        if NOTHING in slot.syllables:
            log = slot.log_posteriors[slot.syllables.index(NOTHING)]
            grown += [replace(one, score=one.score + log) for one in kept]
        if options:
            grown += _extended(kept, place, options, model, steps, 2 * beam)
        kept = _best(grown, beam, history if recombine else None)
    ends = model.log_probs(_histories(kept, history), np.zeros((len(kept), 1), int))[:, 0]
    finished = [
        replace(one, score=one.score + float(end) - one.paid) for one, end in zip(kept, ends, strict=True)
    ]
    return sorted(finished, key=lambda one: -one.score)


def _extended(
    kept: Sequence[_Hypothesis],
    place: int,
    options: Sequence[tuple[str, float, np.ndarray, np.ndarray]],
    model: _Model,
    steps: _Steps,
    count: int,
) -> list[_Hypothesis]:
    """The best ``count`` continuations by one token of the slot."""
    ids = np.concatenate([found for _, _, found, _ in options])  # (C,)
    own = np.concatenate([log + model.weight * scores for _, log, _, scores in options]) + model.bonus
    source = np.repeat(np.arange(len(options)), [len(found) for _, _, found, _ in options])
    past = _histories(kept, model.model.history)
    rated = model.log_probs(past, np.broadcast_to(ids, (len(kept), len(ids))))  # (W, C)
    paid = np.array([one.paid for one in kept])
    spread = np.array([one.score for one in kept])[:, None] - paid[:, None] + own + rated
    states: dict[tuple[int, int], tuple[_Active, float]] = {}
    for column, (number, token) in enumerate(
        zip(source.tolist(), ids.tolist(), strict=True) if steps else ()
    ):
        if found := steps.get((place, options[number][0], token)):
            for row, one in enumerate(kept):
                active, owed, earned = _advance(one.active, found)
                spread[row, column] += owed + earned
                states[row, column] = active, owed
    flat = spread.ravel()
    chosen = (
        np.argsort(-flat, kind="stable")[:count]
        if len(flat) <= count
        else np.argpartition(-flat, count)[:count]
    )
    result = []
    for row, column in zip(*np.unravel_index(chosen, spread.shape), strict=True):
        before, syllable = kept[row], options[source[column]][0]
        active, owed = states.get((int(row), int(column)), (frozenset(), 0.0))
        result.append(
            _Hypothesis(
                (*before.tokens, int(ids[column])),
                (*before.syllables, syllable),
                (*before.slots, place),
                float(spread[row, column]),
                active,
                owed,
            )
        )
    return result


def _advance(active: _Active, steps: Iterable[tuple[int, int, UserWord]]) -> tuple[_Active, float, float]:
    """Words under way after a token, what is paid for them, and what those that end with it earn."""
    going, owed, earned = set(), 0.0, 0.0
    for number, before, word in steps:
        if before and (number, before) not in active:
            continue
        if before + 1 == len(word.hanzi):
            earned += word.weight * len(word.hanzi)
        else:
            going.add((number, before + 1))
            owed = max(owed, word.weight * (before + 1))
    return frozenset(going), owed, earned


def _best(grown: list[_Hypothesis], beam: int, history: int | None) -> list[_Hypothesis]:
    """The best different hypotheses, best first."""
    kept: dict[object, _Hypothesis] = {}
    for one in sorted(grown, key=lambda one: -one.score):
        if history is None:
            key: object = (one.tokens, one.syllables)
        else:
            key = (one.tokens[len(one.tokens) - min(history, len(one.tokens)) :], one.active)
        if key not in kept:
            kept[key] = one
            if len(kept) == beam:
                break
    return list(kept.values())


def _histories(kept: Sequence[_Hypothesis], history: int) -> np.ndarray:
    """Last tokens, (W, history), 0 before the first."""
    result = np.zeros((len(kept), history), np.int64)
    for row, one in zip(result, kept, strict=True):
        last = one.tokens[len(one.tokens) - min(history, len(one.tokens)) :]
        row[history - len(last) :] = last
    return result


class _WordsInNetwork:
    """Where user words may come in a network.

    Attributes:
        steps: (slot, syllable, character) → the words of which it may be the next character.
    """

    def __init__(self, network: ConfusionNetwork, words: UserWords):
        self.steps: dict[tuple[int, str, str], list[tuple[int, int, UserWord]]] = {}
        self._network = network
        if not len(words):
            return
        numbers = {id(word): number for number, word in enumerate(words.words)}
        for start in range(len(network.slots)):
            for first, second in self._pairs(start):
                for word in words.beginning_with(first[1], second[1] if second else None):
                    self._follow(word, numbers[id(word)], [first, second] if second else [first])

    def hanzi(self, known: object) -> list[str]:
        """Characters of these words that aren't ``known``."""
        return sorted({character for _, _, character in self.steps if character not in known})

    def at(self, slot: int, syllable: str) -> list[str]:
        """Characters of words that may come for a syllable of a slot."""
        return [c for (place, said, c) in self.steps if (place, said) == (slot, syllable)]

    def _pairs(self, start: int) -> Iterable[tuple[tuple[int, str], tuple[int, str] | None]]:
        for syllable in self._said(start):
            yield (start, syllable), None
            for following in self._after(start):
                yield (start, syllable), following

    def _said(self, slot: int) -> list[str]:
        return [syllable for syllable in self._network.slots[slot].syllables if syllable != NOTHING]

    def _after(self, slot: int) -> Iterable[tuple[int, str]]:
        """The (slot, syllable) that may come next: slots in which nothing may be said can be passed over."""
        for place in range(slot + 1, len(self._network.slots)):
            yield from ((place, syllable) for syllable in self._said(place))
            if NOTHING not in self._network.slots[place].syllables:
                return

    def _follow(self, word: UserWord, number: int, taken: list[tuple[int, str]]) -> None:
        """Note all ways to complete a word that begins with these syllables."""
        if not all(word.reads(i, syllable) for i, (_, syllable) in enumerate(taken)):
            return
        if len(taken) == len(word.hanzi):
            for before, (slot, syllable) in enumerate(taken):
                steps = self.steps.setdefault((slot, syllable, word.hanzi[before]), [])
                if (number, before, word) not in steps:
                    steps.append((number, before, word))
            return
        for following in self._after(taken[-1][0]):
            self._follow(word, number, [*taken, following])
