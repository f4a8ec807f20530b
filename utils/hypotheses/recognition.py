"""The results of the stages: CTC classes, alternatives of syllables, hanzi, and what a recogniser returns.

``model_speech.ctc`` finds a :class:`Hypothesis` and its :class:`ConfusionNetwork`, ``model_language`` an
:class:`Alternative` with hanzi, ``recognition`` a :class:`Recognition` of them. Transcript writers and
evaluation read that and need no model.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from utils.errors import AudioError
from utils.hypotheses.phrases import PhraseResult
from utils.mandarin.punctuation import without_marks

# CTC has a peak near the middle of a syllable; most syllables are shorter than twice this.
REACH_SECONDS = 0.25
_SMALLEST_GAP = 0.01  # seconds between the middles of two syllables
NOTHING = ""
"""Stands for the alternative that there is no syllable in a slot."""


@dataclass(frozen=True)
class Hypothesis:
    """A token sequence that CTC decoding has found for an utterance.

    Attributes:
        tokens: classes, without the blank.
        score: natural-log probability: of the best path (greedy decoding), or of all alignments in the beam
            (beam search), including the language model's contribution if there is one.
        frames: output frame in which each token peaks.
        posteriors: the acoustic model's probability of each token in that frame.
    """

    tokens: tuple[int, ...]
    score: float
    frames: tuple[int, ...]
    posteriors: tuple[float, ...]


@dataclass(frozen=True)
class Slot:
    """A stretch of time with at most one syllable.

    Attributes:
        syllables: alternatives, the most probable first; may include :data:`NOTHING`.
        log_posteriors: natural logarithms of their probabilities, which sum to 1, or less if improbable
            alternatives were left out.
        frame: output frame of the acoustic model in which the syllable has its peak.
    """

    syllables: tuple[str, ...]
    log_posteriors: tuple[float, ...]
    frame: int


@dataclass(frozen=True)
class ConfusionNetwork:
    """Slots in time order (Mangu, Brill and Stolcke, "Finding consensus in speech recognition", 2000)."""

    slots: tuple[Slot, ...]


@dataclass(frozen=True)
class Alternative:
    """One hypothesis for an utterance, or for several one after the other.

    Attributes:
        pinyin: canonical syllables.
        hanzi: their hanzi; empty without a second stage (the language model).
        score: natural logarithm of the probability of the syllables; if a language model was used in the
            beam search, its weighted score is added. With the joint search the joint score; with phrases the
            log-likelihood ratio of the phrases against the best free syllables.
        confidence: of each hanzi, the fraction of all hypotheses found, by e^score, that have it at the same
            time. Only the joint search (:mod:`model_language.search.joint`) computes it, and the next one.
        slots: the index of each syllable's slot in the confusion network.
        texts: text of each syllable, if it is not a hanzi each: a user word with Latin letters belongs to its
            first syllable, and the others have none.
    """

    pinyin: tuple[str, ...]
    hanzi: str
    score: float
    confidence: tuple[float, ...] = ()
    slots: tuple[int, ...] = field(default=(), compare=False)
    texts: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Word:
    """A hanzi, a number in digits, a Latin word, an accepted phrase, or a syllable without a text.

    Attributes:
        text: as it is written.
        pinyin: its canonical syllables.
        start, end: seconds from the start of the recording.
        confidence: that of its least certain syllable, 0 to 1; None if the acoustic model was not calibrated.
    """

    text: str
    pinyin: tuple[str, ...]
    start: float
    end: float
    confidence: float | None


@dataclass(frozen=True)
class Recognition:
    """What was recognised: in a whole recording, in one segment of it, or so far in live audio.

    A segment is a stretch of speech between two pauses; a short recording has one. While an utterance of a
    stream is still being spoken, there are partial results, which the next one or the final segment replaces.

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
        word_starts: indices of the syllables of the best hypothesis with which words begin; () if not known.
        labels: text of each syllable, if it is not the hanzi of the best hypothesis: with punctuation behind
            it, with numbers as digits.
        channel: name of the channel of a segment, where the channels are recognised separately.
        id: the caller's name of a whole recording.
        segments: of a whole recording; () in a segment.
        is_final: False for a partial result. One without syllables withdraws those before, and no segment
            follows.
        stable: number of leading syllables of a partial result that later ones will probably keep.
    """

    start: float
    end: float
    times: tuple[tuple[float, float], ...] = ()
    n_best: tuple[Alternative, ...] = (Alternative((), "", 0.0),)
    phrase: PhraseResult | None = None
    confidence: tuple[float, ...] = ()
    certainty: np.ndarray | None = field(default=None, compare=False)
    word_starts: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    channel: str = ""
    id: str = ""
    segments: tuple["Recognition", ...] = ()
    is_final: bool = True
    stable: int = 0

    @property
    def best(self) -> Alternative:
        """The best hypothesis."""
        return self.n_best[0]

    @property
    def pinyin(self) -> tuple[str, ...]:
        """Canonical syllables of the best hypothesis."""
        return self.best.pinyin

    @property
    def hanzi(self) -> str:
        """Text: a character for each syllable but for Latin words, or a phrase; empty without a converter."""
        return self.best.hanzi

    @property
    def seconds(self) -> float:
        """Length of the stretch."""
        return self.end - self.start

    @property
    def phrases(self) -> tuple[PhraseResult, ...]:
        """The comparison of each segment of a recording with the list of phrases, if there is one."""
        return tuple(segment.phrase for segment in self.segments if segment.phrase)

    @property
    def text(self) -> str:
        """A line for each segment with speech: hanzi, or syllables without a second stage.

        Speech that is none of the phrases of a list gives its syllables in brackets.
        """
        if self.segments:
            return "\n".join(segment.text for segment in self.segments if segment.times)
        return self.text_of(0, len(self.pinyin))

    @property
    def words(self) -> tuple[Word, ...]:
        """Everything that is written, in order, with its syllables and times."""
        if self.segments:
            return tuple(word for segment in self.segments for word in segment.words)
        return tuple(
            Word(
                without_marks(text).strip(),
                self.pinyin[first:end],
                self.times[first][0],
                self.times[end - 1][1],
                min(self.confidence[first:end], default=None),
            )
            for text, first, end in self.written()
        )

    def text_of(self, first: int, end: int) -> str:
        """The text of these syllables of a segment."""
        pinyin = " ".join(self.pinyin[first:end])
        if self.phrase and not self.phrase.accepted:
            return f"({pinyin})"
        return "".join(self.syllable_texts()[first:end]).strip() or pinyin

    def syllable_texts(self) -> list[str]:
        """The text of each syllable of a segment.

        A number in digits, a Latin word, or a phrase of another length is the text of its first one.
        """
        if self.labels or self.best.texts:
            return list(self.labels or self.best.texts)
        hanzi, syllables = self.hanzi, len(self.pinyin)
        return list(hanzi) if len(hanzi) == syllables else [hanzi, *[""] * syllables][:syllables]

    def written(self) -> list[tuple[str, int, int]]:
        """Text, first and end syllable of each word; a syllable without a text belongs to the word before."""
        texts = self.syllable_texts() if self.hanzi else self.pinyin
        firsts = [index for index, text in enumerate(texts) if text]
        return [(texts[first], first, end) for first, end in itertools.pairwise([*firsts, len(texts)])]


@dataclass(frozen=True)
class Ending:
    """The end of a recording, or the point where it can't be read any further.

    Attributes:
        seconds: length of the recording, as far as it could be read.
        error: why it can't be read further, or None.
    """

    seconds: float
    error: AudioError | None = None


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
