"""Data classes for what a recogniser returns: segments with syllables, times, hanzi and alternatives.

The recognisers in ``recognition/`` create them; transcript writers and evaluation read them and need no
model. A live stream also gives partial results, before a segment is final.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from utils.errors import AudioError

# CTC has a peak near the middle of a syllable; most syllables are shorter than twice this.
REACH_SECONDS = 0.25
_SMALLEST_GAP = 0.01  # seconds between the middles of two syllables


@dataclass(frozen=True)
class Alternative:
    """One hypothesis: canonical syllables, their hanzi, and the score by which they are ranked.

    ``confidence`` holds the probability of each hanzi, 0 to 1. Only the search for syllables and hanzi
    together (:mod:`model_language.search.joint`) computes it; otherwise it is ().
    """

    pinyin: tuple[str, ...]
    hanzi: str
    score: float
    confidence: tuple[float, ...] = ()

    def __add__(self, following: "Alternative") -> "Alternative":
        """The hypothesis of this stretch and the one after it."""
        return Alternative(
            self.pinyin + following.pinyin,
            self.hanzi + following.hanzi,
            self.score + following.score,
            self.confidence + following.confidence,
        )


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


@dataclass(frozen=True)
class Segment:
    """The result for one stretch of a recording; a short recording has one segment.

    Attributes:
        start, end: limits of the stretch, in seconds from the start of the recording.
        times: (start, end) of each syllable of the best hypothesis, in seconds from the start of the
            recording.
        n_best: hypotheses, the best first; at least one.
        phrase: the comparison with a list of phrases, if there is a list. The hanzi of the best hypothesis
            are then the accepted phrase, which may have more or fewer characters than syllables, or empty.
        confidence: probability that each syllable of the best hypothesis is right; () if the acoustic model
            was not calibrated.
        certainty: (syllables, features) from which the confidence is computed, see
            :mod:`recognition.confidence`; None from a stream.
        labels: text of each syllable, if it is not the hanzi of the best hypothesis: with numbers as digits.
    """

    start: float
    end: float
    times: tuple[tuple[float, float], ...]
    n_best: tuple[Alternative, ...]
    phrase: PhraseResult | None = None
    confidence: tuple[float, ...] = ()
    certainty: np.ndarray | None = field(default=None, compare=False)
    labels: tuple[str, ...] = ()

    @property
    def best(self) -> Alternative:
        """The best hypothesis."""
        return self.n_best[0]


@dataclass(frozen=True)
class Partial:
    """The result so far for an utterance that is still being spoken; the next one, or a segment, replaces it.

    Attributes:
        start, end: limits of the utterance so far, in seconds from the start of the stream.
        pinyin: canonical syllables; () withdraws the partial results before, and no segment follows.
        times: (start, end) of each syllable, in seconds from the start of the stream.
        hanzi: as many characters as syllables; empty without a second stage (the language model).
        confidence: probability that each syllable is right; () if the acoustic model was not calibrated.
        stable: number of leading syllables that later partial results will probably keep.
    """

    start: float
    end: float
    pinyin: tuple[str, ...]
    times: tuple[tuple[float, float], ...] = ()
    hanzi: str = ""
    confidence: tuple[float, ...] = ()
    stable: int = 0


@dataclass(frozen=True)
class Ending:
    """The end of a recording, or the point where it can't be read any further.

    Attributes:
        seconds: length of the recording, as far as it could be read.
        error: why it can't be read further, or None.
    """

    seconds: float
    error: AudioError | None = None


@dataclass(frozen=True)
class Recognition:
    """The result for a whole recording.

    Attributes:
        id: the caller's name of the recording.
        seconds: length of the recording.
        pinyin: canonical syllables of the best hypothesis.
        hanzi: as many characters as syllables; empty without a second stage (the language model).
        score: natural logarithm of the probability of the syllables; if a language model was used in the
            beam search, its weighted score is added. With the joint search the joint score; with phrases the
            log-likelihood ratio of the phrases against the best free syllables.
        times: (start, end) in seconds of each syllable.
        n_best: hypotheses, the best first (which is the one above).
        phrases: the comparison of each utterance in the recording with the list of phrases, if there is one.
        confidence, certainty: as in :class:`Segment`, for each syllable.
    """

    id: str
    seconds: float
    pinyin: tuple[str, ...]
    hanzi: str
    score: float
    times: tuple[tuple[float, float], ...]
    n_best: tuple[Alternative, ...]
    phrases: tuple[PhraseResult, ...] = ()
    confidence: tuple[float, ...] = ()
    certainty: np.ndarray | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Inspection:
    """The output of an acoustic model for a recording.

    Attributes:
        posteriors: (T', classes) float32, the probability of each class.
        classes: the tokens of the classes; the last one is the blank.
        frame_seconds: time from one frame to the next.
        start: where the first frame begins, in seconds from the start of the recording; negative if silence
            was added before it.
    """

    posteriors: np.ndarray
    classes: tuple[str, ...]
    frame_seconds: float
    start: float = 0.0

    def frames(self, seconds: np.ndarray) -> np.ndarray:
        """The frame at each time (n,) in the recording, (n,) int: the first or the last one if outside."""
        frames = ((seconds - self.start) / self.frame_seconds).astype(int)
        return np.clip(frames, 0, len(self.posteriors) - 1)


def syllable_times(
    frames: Sequence[int], frame_seconds: float, seconds: float, start: float = 0.0, lead_seconds: float = 0.0
) -> list[tuple[float, float]]:
    """(start, end) of each syllable, estimated from the output frame of its CTC peak.

    CTC gives one point for each syllable, not its borders: these are half-way between the middles of
    neighbouring syllables, but at most 0.25 s from the syllable's own, and within the stretch. Middles
    outside the stretch are moved into it. Every syllable has a positive length.

    Args:
        frames: output frame of each syllable, counted from the start of the stretch.
        frame_seconds: time from one frame to the next.
        seconds: length of the stretch.
        start: start of the stretch in seconds; it is added to all times.
        lead_seconds: time from the peak to the middle of the syllable, see
            :attr:`recognition.confidence.Calibration.lead_seconds`.
    """
    middles = _within((np.asarray(frames) + 0.5) * frame_seconds + lead_seconds, seconds)
    borders = [0.0, *((a + b) / 2 for a, b in itertools.pairwise(middles)), seconds]
    return [
        (start + max(borders[i], middle - REACH_SECONDS), start + min(borders[i + 1], middle + REACH_SECONDS))
        for i, middle in enumerate(middles)
    ]


def _within(middles: np.ndarray, seconds: float) -> list[float]:
    """Ascending times (n,), moved into 0 to ``seconds`` and kept apart."""
    gap = min(_SMALLEST_GAP, seconds / (len(middles) + 1))
    steps = gap * np.arange(len(middles))
    ascending = np.maximum.accumulate(middles.clip(0.0, seconds) - steps) + steps
    return np.minimum(ascending, seconds - steps[::-1]).tolist()


def phrase_segment(
    result: PhraseResult,
    start: float,
    seconds: float,
    pinyin: tuple[str, ...],
    frames: Sequence[int],
    frame_seconds: float,
    lead_seconds: float = 0.0,
) -> Segment:
    """The segment of an utterance that was compared with a list of phrases.

    The best hypothesis of an accepted phrase is its text with its syllables; that of a rejected one is the
    free syllables, without hanzi.

    Args:
        result: the comparison; its times count from the start of the recording.
        start: start of the utterance in the recording, in seconds.
        seconds: length of the utterance.
        pinyin: free syllables: those recognised without the list of phrases.
        frames: output frame of each free syllable, counted from the start of the utterance.
        frame_seconds: time from one frame to the next.
        lead_seconds: as in :func:`syllable_times`.
    """
    if result.accepted:
        # The ratio of the whole phrase, by which the search ranks: those for each syllable need not descend.
        n_best = tuple(
            Alternative(match.pinyin, match.text, match.score * len(match.pinyin)) for match in result.matches
        )
        return Segment(start, start + seconds, result.matches[0].times, n_best, result)
    times = tuple(syllable_times(frames, frame_seconds, seconds, start, lead_seconds))
    return Segment(start, start + seconds, times, (Alternative(pinyin, "", 0.0),), result)
