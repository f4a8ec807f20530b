"""Joint search: chooses the syllables of a confusion network and their hanzi together, by one score.

It looks for the path through the slots, and the hanzi for it, with the highest

    log P(path) + weight · (language + bonus of user words) + bonus · number of syllables

A user word may also be written for syllables that sound like its own, which costs a part of its bonus
(:mod:`model_language.search.word_bonus`).

A generative converter (an n-gram model, or the combined one without its network) scores hanzi and their
readings from left to right, so its search goes through the confusion network itself: language = log P(hanzi)
+ log P(syllables | hanzi). A language model of hanzi, which sees the whole text before a hanzi, may then
rescore the best hypotheses: its weighted log P(hanzi) is added to their scores.

A neural network, which scores each position given the whole sentence, has another search
(:mod:`model_language.search.sequences`).
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model_language.batching import length_batches
from model_language.converters.user_word_converter import UserWordConverter
from model_language.language_model import HanziLanguageModel, SecondPass
from model_language.search.confusion_network_search import search_networks
from model_language.search.grid import TokenModel
from model_language.search.lattice import NetworkPaths
from model_language.search.word_bonus import HanziIds, NetworkWords, scores_of
from model_language.vocabulary.symbols import PAD_ID, UNKNOWN_ID
from utils.hypotheses.recognition import Alternative, ConfusionNetwork

BEAM = 128  # hypotheses kept after each slot
CONFIDENCE_HYPOTHESES = 64  # hypotheses found in each network, from which the confidences are computed
RESCORED_HYPOTHESES = 16  # hypotheses found in each network for rescoring: more do not improve the result
BATCH_SLOTS = 512  # slots of the networks that are searched together


@dataclass(frozen=True)
class JointWeights:
    """Weights of the parts of the score; that of the acoustic model is 1.

    Attributes:
        language: factor of the converter's log-probabilities.
        syllables: factor of the log-probabilities of the syllable n-gram.
        bonus: added for each syllable, because language models prefer short sentences.
        rescoring: factor of the log-probabilities of the language model that rescores the best hypotheses.
    """

    language: float
    syllables: float
    bonus: float
    rescoring: float = 0.0


class JointSearch:
    """Finds the best syllables and hanzi of confusion networks.

    Args:
        converter: a generative converter with its user words.
        weights: weights of the parts of the score.
        beam: hypotheses kept after each slot.
        language_model: rescores the best hypotheses; None: no rescoring.
    """

    has_ngrams = True  # of hanzi

    def __init__(
        self,
        converter: UserWordConverter,
        weights: JointWeights,
        beam: int = BEAM,
        language_model: HanziLanguageModel | None = None,
    ):
        self._converter, self._weights, self._beam = converter, weights, beam
        self._second_pass: SecondPass | None = None
        if language_model and weights.rescoring:
            self._second_pass = SecondPass(language_model, weights.rescoring)
        self._candidates: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def search(self, networks: Sequence[ConfusionNetwork], n: int = 1) -> list[list[Alternative]]:
        """Up to ``n`` hypotheses for each network (at least one), the best first."""
        found: list[list[Alternative]] = [[] for _ in networks]
        # Networks of similar length are searched together.
        for batch in length_batches([1 + len(network.slots) for network in networks], BATCH_SLOTS):
            longest_first = batch[::-1]
            searched = self._search([networks[index] for index in longest_first], n)
            for index, hypotheses in zip(longest_first, searched, strict=True):
                found[index] = hypotheses
        return found

    def evidence(self, hypothesis: Alternative) -> np.ndarray:
        """The converter's log-scores of each hanzi of a hypothesis, for confidences: (syllables, 2) float64.

        The first column sums the scores of all n-grams that contain the hanzi: a wrong hanzi lowers those on
        both sides. The second is the score of the hanzi for its syllable, without context.
        """
        converter = self._converter.converter
        assert converter.history_model  # a generative converter has one
        order = converter.history_model.history + 1
        size = len(converter.symbols.hanzi)
        ids = converter.symbols.encode_hanzi(hypothesis.hanzi).astype(np.int64)
        rated = np.where(ids == PAD_ID, size, ids)  # as in the search: other hanzi of user words
        scores = converter.history_model.sentence_log_probs(np.where(ids == PAD_ID, UNKNOWN_ID, ids))
        sums = np.convolve(np.pad(scores.astype(float), (0, max(order - 2, 0))), np.ones(order), "valid")
        own = []
        for number, syllable in zip(rated.tolist(), hypothesis.pinyin, strict=True):
            own += scores_of([number], *self._candidates_of(syllable), size)
        return np.column_stack([sums[: len(ids)], own])

    def _search(self, networks: Sequence[ConfusionNetwork], n: int) -> list[list[Alternative]]:
        """Up to ``n`` hypotheses for each network, the longest network first, with a generative converter."""
        converter, weights = self._converter.converter, self._weights
        assert converter.history_model  # a generative converter has one
        ids, size = HanziIds(converter.symbols), len(converter.symbols.hanzi)
        words: list[NetworkWords] = []
        if len(self._converter.words):
            own = self._converter.words
            words = [NetworkWords(network, own, ids, weights.language) for network in networks]

        def candidates(network: int, slot: int, syllable: str) -> tuple[np.ndarray, np.ndarray]:
            hanzi, scores = self._candidates_of(syllable)
            if not words:
                return hanzi, scores
            needed = dict.fromkeys(number for of, number in words[network].entries(slot) if of == syllable)
            added = [number for number in needed if number not in hanzi]
            if not added:
                return hanzi, scores
            own = np.array(scores_of(added, hanzi, scores, size))
            return np.append(hanzi, added), np.append(scores, own)

        own_size = size if words else None
        model = TokenModel(
            converter.history_model, weights.language, weights.bonus, own_size, converter.path_model
        )
        count = max(n, RESCORED_HYPOTHESES if self._second_pass else CONFIDENCE_HYPOTHESES)
        found = search_networks(networks, candidates, model, self._beam, count, words)
        if self._second_pass:
            found = self._rescored(found, self._second_pass, ids)
        return [
            [
                Alternative(
                    path.syllables, ids.decode(path.tokens), path.score, paths.confidence(path), path.slots
                )
                for path in itertools.islice(paths, n)
            ]
            for paths in found
        ]

    def _rescored(
        self, found: Sequence[NetworkPaths], second_pass: SecondPass, ids: HanziIds
    ) -> list[NetworkPaths]:
        """The paths through each network, rescored by the language model and sorted by the new scores."""
        texts = [[ids.decode(path.tokens) for path in paths] for paths in found]
        words = self._converter.words
        spans = [[words.spans_in(text) for text in own] for own in texts] if len(words) else None
        gains = second_pass.gains(texts, spans)
        return [paths.rescored(paths.scores + gain) for paths, gain in zip(found, gains, strict=True)]

    def _candidates_of(self, syllable: str) -> tuple[np.ndarray, np.ndarray]:
        """Hanzi ids of a syllable and their scores without context, both (K,)."""
        if syllable not in self._candidates:
            grid = self._converter.converter.grid([[syllable]])
            used = grid.candidates[0, 0] > PAD_ID
            self._candidates[syllable] = (
                grid.candidates[0, 0, used],
                grid.scores[0, 0, used].astype(np.float64),
            )
        return self._candidates[syllable]
