"""Confusion networks of syllables in; the hanzi that are best with all that is known, out.

Looked for is the path through the slots, and the hanzi for it, with the highest

    log P(path) + weight · language + bonus · syllables + what user words earn

An n-gram converter, and a fused one without its network, rates hanzi and readings one after the other: its
search goes through the network itself (language = log P(hanzi) + log P(syllables | hanzi)). A network rates
each position by the whole sentence: it converts the n best sequences of syllables, and the best sum wins
(language = log P(hanzi | syllables)). These sequences are found with a language model of syllables if there
is one, which then also counts in the sum; else with the n-gram model of hanzi that the converter itself may
have; else by the acoustic model alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from model_language.converters.combined import FusedConverter
from model_language.converters.explain import GridConverter, GuidedConverter
from model_language.converters.ngram import READINGS
from model_language.ngram.syllables import SyllableNgram, load_syllable_ngram
from model_language.search.confusion_network import RatedModel, search_network
from model_language.search.confusion_network_words import WordsInNetwork
from model_language.search.user_words import UserWords
from model_language.vocabulary.symbols import PAD_ID
from utils.hypotheses.confusion_network import NOTHING, ConfusionNetwork
from utils.softmax import softmax

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


# By what rates hanzi; tuned on the dev set of the demo, whose sentences its language models know well.
TUNED = {
    "n-gram": JointWeights(language=1.0, syllables=0.0, bonus=3.0),
    "network and syllables": JointWeights(language=1.0, syllables=1.0, bonus=3.0),
    "network": JointWeights(language=3.0, syllables=0.0, bonus=0.0),
}


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
        words, weights = WordsInNetwork(network, self._converter.words), self._weights
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
        paths = search_network(
            network,
            rows,
            RatedModel(converter.history_model, weights.language, weights.bonus, size, converter.path_model),
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
        """Sequences of syllables for a network to convert, with what counts of them without it."""
        weights, hanzi = self._weights, self._converter.converter.history_model
        if self._syllables is None and hanzi is None:
            return [
                JointReading(path.syllables, "", path.score + weights.bonus * len(path.syllables), path.slots)
                for path in itertools.islice(network.paths(), self._sequences)
            ]
        if self._syllables is not None:
            model = self._syllables
            rated = RatedModel(model, weights.syllables, weights.bonus, model.size)
            paths = search_network(
                network, lambda _, said: (model.ids([said]), np.zeros(1)), rated, {}, self._sequences, False
            )
            return [JointReading(path.syllables, "", path.score, path.slots) for path in paths]
        rated = RatedModel(
            hanzi, weights.language, weights.bonus, len(self._converter.converter.symbols.hanzi)
        )
        paths = search_network(network, self._any_hanzi, rated, {}, 2 * self._sequences, False)
        found = {path.syllables: path.slots for path in reversed(paths)}
        return [
            JointReading(said, "", _heard(network, said, slots) + weights.bonus * len(said), slots)
            for said, slots in list(reversed(found.items()))[: self._sequences]
        ]

    def _any_hanzi(self, slot: int, syllable: str) -> tuple[np.ndarray, np.ndarray]:
        """The hanzi of a syllable as a model of hanzi sees them: what a network would say isn't known yet."""
        ids, _ = self._candidates(syllable)
        return ids, np.zeros(len(ids))


def _heard(network: ConfusionNetwork, syllables: Sequence[str], slots: Sequence[int]) -> float:
    """What the acoustic model says of a path."""
    taken = dict(zip(slots, syllables, strict=True))
    return sum(
        slot.log_posteriors[slot.syllables.index(taken.get(place, NOTHING))]
        for place, slot in enumerate(network.slots)
    )


def load_joint_search(
    converter: GridConverter | GuidedConverter,
    syllables: str | Path | None = None,
    language: float | None = None,
    bonus: float | None = None,
) -> JointSearch:
    """A joint search with what it needs loaded.

    Args:
        converter: with or without user words.
        syllables: a run of ``syllable_ngram``, which helps a network.
        language, bonus: see :class:`JointWeights`; None: what suits the converter (:data:`TUNED`).

    Raises:
        RunError: that run is of another kind, or damaged.
    """
    guided = converter if isinstance(converter, GuidedConverter) else GuidedConverter(converter, UserWords())
    if isinstance(guided.converter, FusedConverter):
        guided = GuidedConverter(guided.converter.counted(), guided.words)
    knows_texts = guided.converter.history_model is not None
    weights = TUNED["n-gram" if knows_texts else "network and syllables" if syllables else "network"]
    if language is not None:
        weights = replace(weights, language=language)
    if bonus is not None:
        weights = replace(weights, bonus=bonus)
    return JointSearch(guided, weights, load_syllable_ngram(syllables) if syllables else None)


def _with_confidence(readings: Sequence[JointReading]) -> list[JointReading]:
    """Add to each reading how much of all probability has the same hanzi in the same slot."""
    scores = np.array([reading.score for reading in readings])
    shares = softmax(scores)
    mass: dict[tuple[int, str], float] = {}
    for reading, share in zip(readings, shares.tolist(), strict=True):
        for at in zip(reading.slots, reading.hanzi, strict=True):
            mass[at] = mass.get(at, 0.0) + share
    return [
        replace(one, confidence=tuple(min(1.0, mass[at]) for at in zip(one.slots, one.hanzi, strict=True)))
        for one in readings
    ]
