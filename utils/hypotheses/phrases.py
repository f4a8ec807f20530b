"""How well the phrases of a list fit a stretch of speech."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class PhraseMatch:
    """A phrase of the list, compared with a stretch of speech.

    Attributes:
        text: the phrase as the file writes it, with the chosen alternatives and numbers in hanzi.
        line: line number of the phrase in the file, from 1.
        slots: value of each named slot (a variable part of a phrase): a text, or an int for a number.
        pinyin: canonical syllables of the pronunciation that fits best.
        times: (start, end) of each syllable, in seconds from the start of the recording.
        score: log-likelihood ratio for each syllable, phrase against the best free syllables; at most 0.
        confidence: probability that the phrase was spoken, 0 to 1.
    """

    text: str
    line: int
    slots: Mapping[str, str | int]
    pinyin: tuple[str, ...]
    times: tuple[tuple[float, float], ...]
    score: float
    confidence: float


@dataclass(frozen=True)
class PhraseResult:
    """The phrases that fit a stretch of speech best.

    Attributes:
        matches: the best first; empty if the stretch is too short for any phrase.
        accepted: whether the probability that a phrase of the list was spoken reaches the threshold.
    """

    matches: tuple[PhraseMatch, ...]
    accepted: bool
