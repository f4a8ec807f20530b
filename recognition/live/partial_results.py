"""Decodes the logits of an utterance in a live stream: partial results first, segments when it ends.

A partial result is a hypothesis of the utterance so far. It is decoded greedily, which takes milliseconds;
the segments are those of the recogniser, with all its searches. Both kinds of live stream use it.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from model_language.converters.base import Converter
from model_language.converters.user_word_converter import UserWordConverter
from model_speech.ctc.decoder import greedy_decode
from recognition.confidence import PLAIN, frame_entropy, syllable_features
from recognition.recognizer import Recognizer
from recognition.syllables import spoken
from utils.hypotheses.recognition import Alternative, Recognition, syllable_times

# Syllables that are converted again before the first one that has changed since the last partial result: a
# word rarely has more. The hanzi before them stay, because conversion takes most of the time of a partial
# result.
CONTEXT_SYLLABLES = 4


class PartialResultDecoder:
    """Decodes the utterances of one stream; an `UtteranceDecoder` of :mod:`streaming.speech.utterances`.

    Args:
        recognizer: for the segments; its converter also writes the hanzi of the partial results.
    """

    def __init__(self, recognizer: Recognizer):
        self._recognizer, self._converter = recognizer, _quick(recognizer.converter)
        self._pinyin: tuple[str, ...] = ()  # of the last partial result
        self._hanzi = ""

    def partial(self, logits: np.ndarray, start: float, seconds: float) -> Recognition:
        """A partial result from the logits (T, C), T ≥ 1, of the utterance so far.

        Args:
            logits: logits of the utterance.
            start: start of the utterance, in seconds from the start of the stream.
            seconds: length of the utterance so far.
        """
        acoustic, calibration = self._recognizer.acoustic, self._recognizer.calibration
        (hypothesis,) = greedy_decode(logits[None], np.array([len(logits)]), acoustic.vocabulary.blank_index)
        pinyin, frames, posteriors, hanzi = spoken(hypothesis, acoustic.vocabulary)
        best = Alternative(pinyin, hanzi or self._in_hanzi(pinyin), hypothesis.score)
        features = syllable_features(frames, posteriors, frame_entropy(logits))
        return Recognition(
            start,
            start + seconds,
            tuple(syllable_times(frames, acoustic.frame_seconds, seconds, start, calibration.lead_seconds)),
            (self._recognizer.words.written(best),),
            confidence=calibration.confidence(PLAIN, features),
            is_final=False,
        )

    def final(self, logits: np.ndarray, start: float, seconds: float) -> list[Recognition]:
        """The segments of an utterance that has ended; empty if it has no syllable."""
        return [
            segment
            for segment in self._recognizer.segments_of_logits(logits, start, seconds)
            if segment.times
        ]

    def _in_hanzi(self, pinyin: tuple[str, ...]) -> str:
        if self._converter is None or not pinyin:
            return ""
        if pinyin != self._pinyin:
            common = common_syllables([pinyin, self._pinyin])
            first = max(0, common - CONTEXT_SYLLABLES)
            self._hanzi = self._hanzi[:first] + self._converter.convert([pinyin[first:]])[0]
            self._pinyin = pinyin
        return self._hanzi


def _quick(converter: Any) -> Any:
    """The same converter, but it searches once, with one assumed rate of recognition errors."""
    if isinstance(converter, UserWordConverter):
        return UserWordConverter(_quick(converter.converter), converter.words)
    return converter.by_error_rate()[0] if isinstance(converter, Converter) else converter


def common_syllables(sequences: Sequence[Sequence[str]]) -> int:
    """The number of leading syllables that are the same in all sequences."""
    columns = zip(*sequences, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda column: len(set(column)) == 1, columns))
