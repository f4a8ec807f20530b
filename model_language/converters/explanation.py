"""Explains a conversion: the confidence of each character, its runner-up, and each model's part of the lead.

Each character has two estimates of its probability. Both tend to be too high, so the lower one is its
confidence: the fraction of the n best paths' probability that belongs to paths with it, and its probability
given all other characters. The second estimate also gives the runner-up, and the parts of the winner's lead
over it: how much the scores of the network (or of the readings), the n-gram model, the dictionary words, the
user words, and the language model of a second pass would fall if the runner-up replaced the winner.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model_language.converters.found_paths import FoundPaths
from model_language.search.grid import Conversion, HistoryModel
from model_language.search.second_pass import SecondPass
from model_language.search.user_words import Span, written_spans
from model_language.search.word_bonus import GridWords
from model_language.vocabulary.symbols import PAD_ID
from utils.softmax import softmax

NGRAM_PART, DICTIONARY_PART, WORDS_PART = "n-gram", "words", "user words"
SECOND_PASS_PART = "language model"
LEAST_PATHS = 16
"""Least number of paths from which confidences are estimated."""
# Hanzi on each side that are divided into words again when one is exchanged.
_DIVISION_CONTEXT = 24


@dataclass(frozen=True)
class Character:
    """A character of a conversion and the reasons for it.

    Attributes:
        hanzi: the character.
        syllable: the syllable that it is written for.
        confidence: estimated probability that it is right, 0 to 1.
        runner_up: the next best character for the syllable; empty if there is no other.
        lead: for each part of the score, the difference to the runner-up's (natural logarithm); the sum of
            the differences decides.
    """

    hanzi: str
    syllable: str
    confidence: float
    runner_up: str
    lead: dict[str, float]


@dataclass(frozen=True)
class Explanation:
    """A converted sentence with reasons.

    Attributes:
        n_best: its conversions, the best first; the scores include the bonus of user words.
        characters: the characters of the best conversion.
        user_words: the user words in it.
    """

    n_best: tuple[Conversion, ...]
    characters: tuple[Character, ...]
    user_words: tuple[Span, ...]


def explanation(
    paths: FoundPaths, row: int, sentence: Sequence[str], spans: Sequence[Span], n: int
) -> Explanation:
    """A sentence with reasons, from the paths that a search has found.

    Args:
        paths, row: the result of the search and the sentence's row in it.
        sentence: its syllables.
        spans: user words whose syllables occur in it.
        n: number of conversions that are kept, of all from which the confidences are estimated.
    """
    conversions = paths.conversions(row, max(n, LEAST_PATHS))
    best = conversions[0].hanzi
    leads = leads_of_characters(paths, row)
    if paths.converter.second_pass:
        leads = _with_second_pass(leads, best, spans, paths.converter.second_pass)
    columns = zip(best, sentence, _path_fractions(conversions), leads, strict=True)
    characters = [
        Character(hanzi, syllable, min(fraction, probability), runner_up, lead)
        for hanzi, syllable, fraction, (probability, runner_up, lead) in columns
    ]
    return Explanation(tuple(conversions[:n]), tuple(characters), written_spans(spans, best))


def _path_fractions(conversions: Sequence[Conversion]) -> list[float]:
    """Of each character of the best conversion, the fraction of all that have it, by probability."""
    logs = np.array([conversion.score for conversion in conversions])
    characters = np.array([list(conversion.hanzi) for conversion in conversions])  # (n, L)
    return (softmax(logs) @ (characters == characters[0])).tolist()


def leads_of_characters(found: FoundPaths, row: int) -> list[tuple[float, str, dict[str, float]]]:
    """At each position of the best path: probability given the others, runner-up, lead by part."""
    grid, length = found.words.grid, found.length(row)
    best = found.sequences[row, 0, :length].astype(np.int64)
    leads = []
    for position in range(length):
        used = grid.candidates[row, position] > PAD_ID
        hanzi, own = grid.candidates[row, position, used].astype(np.int64), grid.scores[row, position, used]
        parts = {found.converter.score_kind: own.astype(np.float64)}
        if found.history:
            parts[NGRAM_PART] = _history_around(found.history, best, position, hanzi)
        if found.paths:
            changed, _ = _exchanged(best, position, hanzi, _DIVISION_CONTEXT)
            parts[DICTIONARY_PART] = found.paths.scores(changed)
        parts[WORDS_PART] = found.words.earned(row, best, position, hanzi)
        leads.append(_lead(parts, hanzi, int(best[position]), found.words))
    return leads


def _lead(
    parts: dict[str, np.ndarray], hanzi: np.ndarray, winner: int, words: GridWords
) -> tuple[float, str, dict[str, float]]:
    totals = np.sum(list(parts.values()), axis=0)
    chosen = int(np.flatnonzero(hanzi == winner)[0])
    probability = float(1 / np.exp(totals - totals[chosen]).sum())
    others = np.where(hanzi == winner, -np.inf, totals)
    if others.max() == -np.inf:
        return probability, "", {}
    second = int(others.argmax())
    lead = {part: float(values[chosen] - values[second]) for part, values in parts.items()}
    return probability, words.decode([int(hanzi[second])]), lead


def _with_second_pass(
    leads: Sequence[tuple[float, str, dict[str, float]]],
    best: str,
    spans: Sequence[Span],
    second_pass: SecondPass,
) -> list[tuple[float, str, dict[str, float]]]:
    """The same with the lead over each runner-up by the language model."""
    texts = [best] + [
        best[:position] + (runner_up or best[position]) + best[position + 1 :]
        for position, (_, runner_up, _) in enumerate(leads)
    ]
    (gains,) = second_pass.gains([texts], [[spans] * len(texts)])
    rows = zip(leads, (gains[0] - gains[1:]).tolist(), strict=True)
    return [
        (probability, runner_up, {**lead, SECOND_PASS_PART: by} if runner_up else lead)
        for (probability, runner_up, lead), by in rows
    ]


def _exchanged(path: np.ndarray, position: int, hanzi: np.ndarray, context: int) -> tuple[np.ndarray, int]:
    """A path (L,) around a position with each of some hanzi (K,) there: (K, at most 2 · context + 1).

    The second result is the column of ``position``.
    """
    start = max(0, position - context)
    exchanged = np.repeat(path[None, start : position + context + 1], len(hanzi), axis=0)
    exchanged[:, position - start] = hanzi
    return exchanged, position - start


def _history_around(model: HistoryModel, path: np.ndarray, position: int, hanzi: np.ndarray) -> np.ndarray:
    """The scores of a path (L,) that depend on a position, with each of some hanzi (K,) there: (K,)."""
    exchanged, column = _exchanged(path, position, hanzi, model.history)
    begun = np.pad(exchanged, ((0, 0), (model.history, 1)))  # the beginning and the end of the sentence
    total = np.zeros(len(hanzi))
    for at in range(column, column + min(model.history, len(path) - position) + 1):
        total += model.log_probs(begun[:, at : at + model.history], begun[:, at + model.history, None])[:, 0]
    return total
