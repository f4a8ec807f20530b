"""Joint search: chooses the syllables of a confusion network and their hanzi together, by one score.

It looks for the path through the slots, and the hanzi for it, with the highest

    log P(path) + weight · language + bonus · number of syllables + bonus of user words

A generative converter (an n-gram model, or the combined one without its network) scores hanzi and their
readings from left to right, so its search goes through the confusion network itself: language = log P(hanzi)
+ log P(syllables | hanzi). A language model of hanzi, which sees the whole text before a hanzi, may then
rescore the best hypotheses: its weighted log P(hanzi) is added to their scores.

A neural network scores each position given the whole sentence. It converts the n best syllable sequences, and
the best sum wins: language = log P(hanzi | syllables). These sequences are found with a syllable n-gram if
there is one, whose score is then part of the sum; otherwise by the acoustic model alone.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from model_language.batching import length_batches
from model_language.converters.base import EMISSIONS, Converter
from model_language.converters.user_word_converter import UserWordConverter
from model_language.language_model import HanziLanguageModel, SecondPass
from model_language.ngram.syllables import SyllableNgram, load_syllable_ngram
from model_language.search.confusion_network_search import search_networks
from model_language.search.grid import TokenModel
from model_language.search.lattice import NetworkPaths
from model_language.search.user_words import UserWords
from model_language.search.word_bonus import HanziIds, NetworkWords, scores_of
from model_language.vocabulary.symbols import PAD_ID, UNKNOWN_ID
from utils.arrays import softmax
from utils.hypotheses.confusion_network import ConfusionNetwork

SEQUENCES = 40  # syllable sequences that a network converts for each utterance
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


# Default weights for each kind of model that scores the hanzi, tuned on the dev set of the demo, whose
# sentences its language models predict well.
TUNED = {
    "n-gram": JointWeights(language=1.0, syllables=0.0, bonus=3.0),
    "network and syllables": JointWeights(language=1.0, syllables=1.0, bonus=3.0),
    "network": JointWeights(language=3.0, syllables=0.0, bonus=0.0),
}


@dataclass(frozen=True)
class JointHypothesis:
    """One hypothesis for an utterance.

    Attributes:
        pinyin: canonical syllables.
        hanzi: one character for each syllable.
        score: the joint score.
        slots: the slot of each syllable.
        confidence: for each character, the fraction of all hypotheses found, by e^score, that have it in its
            slot.
    """

    pinyin: tuple[str, ...]
    hanzi: str
    score: float
    slots: tuple[int, ...]
    confidence: tuple[float, ...] = ()


class JointSearch:
    """Finds the best syllables and hanzi of confusion networks.

    Args:
        converter: a converter with its user words.
        weights: weights of the parts of the score.
        syllables: a syllable n-gram, for converters that score whole sentences.
        beam: hypotheses kept after each slot.
        sequences: syllable sequences that such a converter converts.
        language_model: rescores the best hypotheses of a generative converter; None: no rescoring.
    """

    def __init__(
        self,
        converter: UserWordConverter,
        weights: JointWeights,
        syllables: SyllableNgram | None = None,
        beam: int = BEAM,
        sequences: int = SEQUENCES,
        language_model: HanziLanguageModel | None = None,
    ):
        self._converter, self._weights, self._beam, self._sequences = converter, weights, beam, sequences
        rescoring = language_model and weights.rescoring
        self._syllables = syllables
        self._second_pass = SecondPass(language_model, weights.rescoring) if rescoring else None
        self._candidates: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def search(self, networks: Sequence[ConfusionNetwork], n: int = 1) -> list[list[JointHypothesis]]:
        """Up to ``n`` hypotheses for each network (at least one), the best first."""
        if _is_generative(self._converter.converter):
            found: list[list[JointHypothesis]] = [[] for _ in networks]
            # Networks of similar length are searched together.
            for batch in length_batches([1 + len(network.slots) for network in networks], BATCH_SLOTS):
                longest_first = batch[::-1]
                searched = self._search([networks[index] for index in longest_first], n)
                for index, hypotheses in zip(longest_first, searched, strict=True):
                    found[index] = hypotheses
        else:
            found = [_with_confidence(hypotheses, n) for hypotheses in self._convert_sequences(networks)]
        return found

    @property
    def has_ngrams(self) -> bool:
        """Whether the converter scores a hanzi given those before it, which :meth:`evidence` needs."""
        return self._converter.converter.history_model is not None

    def evidence(self, hypothesis: JointHypothesis) -> np.ndarray:
        """The converter's log-scores of each hanzi of a hypothesis, for confidences: (syllables, 2) float64.

        The first column sums the scores of all n-grams that contain the hanzi: a wrong hanzi lowers those on
        both sides. The second is the score of the hanzi for its syllable, without context.
        """
        converter = self._converter.converter
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

    def _search(self, networks: Sequence[ConfusionNetwork], n: int) -> list[list[JointHypothesis]]:
        """Up to ``n`` hypotheses for each network, the longest network first, with a generative converter."""
        converter, weights = self._converter.converter, self._weights
        ids, size, words = HanziIds(converter.symbols), None, []
        if len(self._converter.words):
            size = len(converter.symbols.hanzi)
            words = [NetworkWords(network, self._converter.words, ids) for network in networks]

        def candidates(network: int, slot: int, syllable: str) -> tuple[np.ndarray, np.ndarray]:
            hanzi, scores = self._candidates_of(syllable)
            if not words:
                return hanzi, scores
            needed = dict.fromkeys(number for of, number in words[network].entries(slot) if of == syllable)
            added = [number for number in needed if number not in hanzi]
            if not added:
                return hanzi, scores
            return np.append(hanzi, added), np.append(scores, scores_of(added, hanzi, scores, size))

        model = TokenModel(
            converter.history_model, weights.language, weights.bonus, size, converter.path_model
        )
        count = max(n, RESCORED_HYPOTHESES if self._second_pass else CONFIDENCE_HYPOTHESES)
        found = search_networks(networks, candidates, model, self._beam, count, words)
        if self._second_pass:
            found = self._rescored(found, ids)
        return [
            [
                JointHypothesis(
                    path.syllables, ids.decode(path.tokens), path.score, path.slots, paths.confidence(path)
                )
                for path in itertools.islice(paths, n)
            ]
            for paths in found
        ]

    def _rescored(self, found: Sequence[NetworkPaths], ids: HanziIds) -> list[NetworkPaths]:
        """The paths through each network, rescored by the language model and sorted by the new scores."""
        texts = [[ids.decode(path.tokens) for path in paths] for paths in found]
        words = self._converter.words
        spans = [[words.spans(path.syllables) for path in paths] for paths in found] if len(words) else None
        gains = self._second_pass.gains(texts, spans)
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

    def _convert_sequences(self, networks: Sequence[ConfusionNetwork]) -> list[list[JointHypothesis]]:
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

    def _best_sequences(self, network: ConfusionNetwork) -> list[JointHypothesis]:
        """Syllable sequences to convert; their scores are those without the converter."""
        weights = self._weights
        if self._syllables is not None:
            ngram = self._syllables
            model = TokenModel(ngram, weights.syllables, weights.bonus, ngram.size)
            (paths,) = search_networks(
                [network],
                lambda *where: (ngram.ids([where[-1]]), np.zeros(1)),
                model,
                self._beam,
                self._sequences,
            )
            return [JointHypothesis(path.syllables, "", path.score, path.slots) for path in paths]
        return [
            JointHypothesis(path.syllables, "", path.score + weights.bonus * len(path.syllables), path.slots)
            for path in itertools.islice(network.paths(), self._sequences)
        ]


def needs_syllable_ngram(converter: Converter | UserWordConverter) -> bool:
    """Whether the joint search with a converter uses a syllable n-gram; a generative converter needs none."""
    inner = converter.converter if isinstance(converter, UserWordConverter) else converter
    return not _is_generative(inner.generative())


def _is_generative(converter: Converter) -> bool:
    """Whether a converter scores from left to right; its scores are then those of the syllables too."""
    return converter.score_kind == EMISSIONS


def load_joint_search(
    converter: Converter | UserWordConverter,
    syllables: str | Path | None = None,
    language: float | None = None,
    bonus: float | None = None,
    rescoring: float | None = None,
    language_model: HanziLanguageModel | None = None,
) -> JointSearch:
    """A joint search with the models that it needs.

    Args:
        converter: a converter, with or without user words.
        syllables: a run of ``syllable_ngram``; not used where :func:`needs_syllable_ngram` is False.
        language, bonus, rescoring: see :class:`JointWeights`; None: the values for this kind of converter
            (:data:`TUNED`).
        language_model: rescores the best hypotheses.

    Raises:
        RunError: that run is of another kind, or damaged.
    """
    if not isinstance(converter, UserWordConverter):
        converter = UserWordConverter(converter, UserWords())
    generative = converter.converter.generative()
    syllables = None if _is_generative(generative) else syllables
    kind = "network and syllables" if syllables else "network"
    weights = TUNED["n-gram" if generative.history_model is not None else kind]
    if language is not None:
        weights = replace(weights, language=language)
    if bonus is not None:
        weights = replace(weights, bonus=bonus)
    if rescoring is not None:
        weights = replace(weights, rescoring=rescoring)
    search = UserWordConverter(generative, converter.words)
    ngram = load_syllable_ngram(syllables) if syllables else None
    return JointSearch(search, weights, ngram, language_model=language_model)


def _with_confidence(hypotheses: Sequence[JointHypothesis], n: int) -> list[JointHypothesis]:
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
