"""Joint search with a converter that scores each position given the whole sentence: a neural network.

It converts the n best syllable sequences of a confusion network, and the best sum wins. With the terms of
:mod:`model_language.search.joint`, language = log P(hanzi | syllables). These sequences are found with a
syllable n-gram if there is one, whose score is then part of the sum; otherwise by the acoustic model alone.
"""

import heapq
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from model_language.converters.user_word_converter import UserWordConverter
from model_language.ngram.syllables import SyllableNgram
from model_language.search.confusion_network_search import search_networks
from model_language.search.grid import TokenModel
from model_language.search.joint import BEAM, JointWeights
from utils.arrays import softmax
from utils.hypotheses.recognition import NOTHING, Alternative, ConfusionNetwork

SEQUENCES = 40  # syllable sequences that the converter converts for each utterance


class SequenceSearch:
    """Finds the best syllables and hanzi of confusion networks, with the methods of a `JointSearch`.

    Args:
        converter: a converter with its user words.
        weights: weights of the parts of the score.
        syllables: a syllable n-gram.
        sequences: syllable sequences that are converted.
    """

    has_ngrams = False  # of hanzi

    def __init__(
        self,
        converter: UserWordConverter,
        weights: JointWeights,
        syllables: SyllableNgram | None = None,
        sequences: int = SEQUENCES,
    ):
        self._converter, self._weights = converter, weights
        self._syllables, self._sequences = syllables, sequences

    def search(self, networks: Sequence[ConfusionNetwork], n: int = 1) -> list[list[Alternative]]:
        """Up to ``n`` hypotheses for each network (at least one), the best first."""
        return [_with_confidence(hypotheses, n) for hypotheses in self._convert_sequences(networks)]

    def _convert_sequences(self, networks: Sequence[ConfusionNetwork]) -> list[list[Alternative]]:
        """Convert the best syllable sequences of each network."""
        sequences = [self._best_sequences(network) for network in networks]
        conversions = iter(
            self._converter.best([hypothesis.pinyin for found in sequences for hypothesis in found])
        )
        result = []
        for found in sequences:
            hypotheses = []
            for hypothesis in found:
                conversion = next(conversions)
                score = hypothesis.score + self._weights.language * conversion.score
                hypotheses.append(replace(hypothesis, hanzi=conversion.hanzi, score=score))
            result.append(sorted(hypotheses, key=lambda hypothesis: -hypothesis.score))
        return result

    def _best_sequences(self, network: ConfusionNetwork) -> list[Alternative]:
        """Syllable sequences to convert; their scores are those without the converter."""
        weights = self._weights
        if self._syllables is not None:
            ngram = self._syllables
            model = TokenModel(ngram, weights.syllables, weights.bonus, ngram.size)
            (paths,) = search_networks(
                [network],
                lambda *where: (ngram.ids([where[-1]]), np.zeros(1)),
                model,
                BEAM,
                self._sequences,
            )
            return [Alternative(path.syllables, "", path.score, slots=path.slots) for path in paths]
        return [
            replace(path, score=path.score + weights.bonus * len(path.pinyin))
            for path in itertools.islice(best_sequences(network), self._sequences)
        ]


def best_sequences(network: ConfusionNetwork) -> Iterator[Alternative]:
    """Generate distinct syllable sequences, the most probable first, each with its best path.

    Slots are independent, so the next best choice differs in one slot by one step (Lawler's algorithm).
    """
    best = sum(slot.log_posteriors[0] for slot in network.slots)
    choice = (0,) * len(network.slots)
    queue, seen = [(-best, choice, 0)], set()
    while queue:
        cost, choice, first = heapq.heappop(queue)
        path = _path(network, choice, -cost)
        if path.pinyin not in seen:
            seen.add(path.pinyin)
            yield path
        # Only from the last changed slot on, so that each choice is reached once.
        for index in range(first, len(network.slots)):
            logs, rank = network.slots[index].log_posteriors, choice[index]
            if rank + 1 < len(logs):
                step = logs[rank] - logs[rank + 1]
                changed = (*choice[:index], rank + 1, *choice[index + 1 :])
                heapq.heappush(queue, (cost + step, changed, index))


def _path(network: ConfusionNetwork, choice: tuple[int, ...], score: float) -> Alternative:
    chosen = [slot.syllables[rank] for slot, rank in zip(network.slots, choice, strict=True)]
    slots = tuple(index for index, syllable in enumerate(chosen) if syllable != NOTHING)
    return Alternative(tuple(chosen[index] for index in slots), "", score, slots=slots)


def _with_confidence(hypotheses: Sequence[Alternative], n: int) -> list[Alternative]:
    """The first ``n`` of all hypotheses with the confidence of each character."""
    fractions = softmax(np.array([hypothesis.score for hypothesis in hypotheses]))
    mass: dict[tuple[int, str], float] = {}
    for hypothesis, fraction in zip(hypotheses, fractions.tolist(), strict=True):
        for cell in zip(hypothesis.slots, hypothesis.hanzi, strict=True):
            mass[cell] = mass.get(cell, 0.0) + fraction
    return [
        replace(
            hypothesis,
            confidence=tuple(
                min(1.0, mass[cell]) for cell in zip(hypothesis.slots, hypothesis.hanzi, strict=True)
            ),
        )
        for hypothesis in hypotheses[:n]
    ]
