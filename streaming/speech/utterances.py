"""Rows of logits of a stream in; syllables at once, and utterances when they end, out. NumPy only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model_speech.ctc.decoder import Decoder
from model_speech.ctc.greedy import GreedyStream
from utils.hypotheses.recognition import Alternative, Segment, syllable_times
from utils.vocabulary import SPACE, Vocabulary

PAUSE_SECONDS = 0.8  # without a syllable end an utterance
MARGIN_SECONDS = 0.24  # of a pause belong to the utterance beside it
# Where nobody pauses an utterance ends after so long, between two syllables; a tone that the network takes
# for one endless syllable is cut when it has lasted twice as long. So memory stays flat.
LONGEST_SECONDS = 20.0


@dataclass(frozen=True)
class Syllable:
    """A syllable that has just been heard: canonical pinyin, and seconds from the stream's start."""

    pinyin: str
    seconds: float


class UtteranceDecoder:
    """Reads rows as they come, and each utterance once more as a whole.

    Args:
        vocabulary: what the rows' columns stand for.
        decoder: reads the whole utterances.
        row_seconds: from one row to the next.
    """

    def __init__(self, vocabulary: Vocabulary, decoder: Decoder, row_seconds: float):
        self._vocabulary, self._decoder, self._row_seconds = vocabulary, decoder, row_seconds
        self._pause, self._margin, self._longest = (
            max(1, round(seconds / row_seconds))
            for seconds in (PAUSE_SECONDS, MARGIN_SECONDS, LONGEST_SECONDS)
        )
        self._greedy = GreedyStream(vocabulary.blank_index)
        self.reset()

    def reset(self) -> None:
        """Forget all rows."""
        self._greedy.reset()
        self._held: list[np.ndarray] = []  # rows (C,) of the utterance so far, or the margin before it
        self._seen = 0  # rows in all
        self._silent = 0  # rows since the last that wasn't blank
        self._speaking = False
        self._class = self._vocabulary.blank_index  # of the last row

    def feed(self, rows: np.ndarray) -> list[Syllable | Segment]:
        """Take the next rows (m, C); returns what they complete, in its order."""
        return [event for row in rows for event in self._take(row)]

    def flush(self) -> list[Syllable | Segment]:
        """What the end of the stream completes; then `reset`."""
        events = self._syllables(self._greedy.flush())
        if self._speaking:
            events += self._end(len(self._held))
        self.reset()
        return events

    def _take(self, row: np.ndarray) -> list[Syllable | Segment]:
        best = int(row.argmax())
        events = self._syllables(self._greedy.feed(row[None]))
        rows = len(self._held)
        most = self._longest if best != self._class else 2 * self._longest
        if self._speaking and rows >= most:
            events += self._end(rows)
        self._held.append(row)
        self._seen += 1
        self._class = best
        if best != self._vocabulary.blank_index:
            self._speaking, self._silent = True, 0
            return events
        self._silent += 1
        if self._speaking and self._silent >= self._pause:
            events += self._end(len(self._held) - self._pause + self._margin)
        elif not self._speaking:
            del self._held[: -self._margin]
        return events

    def _end(self, rows: int) -> list[Segment]:
        """The utterance of the first ``rows`` held rows, if a syllable is in it; they are forgotten."""
        logits = np.stack(self._held[:rows])  # (rows, C)
        start = (self._seen - len(self._held)) * self._row_seconds
        del self._held[:rows]
        self._speaking = False
        (hypotheses,) = self._decoder.decode(logits[None], np.array([rows]))
        n_best: dict[tuple[str, ...], Alternative] = {}  # without spaces some come twice
        for hypothesis in hypotheses:
            pinyin, _ = self._spoken(hypothesis.tokens, hypothesis.frames)
            n_best.setdefault(pinyin, Alternative(pinyin, "", hypothesis.score))
        pinyin, frames = self._spoken(hypotheses[0].tokens, hypotheses[0].frames)
        if not pinyin:
            return []
        seconds = rows * self._row_seconds
        times = syllable_times(frames, self._row_seconds, seconds)
        moved = tuple((start + begin, start + end) for begin, end in times)
        return [Segment(start, start + seconds, moved, tuple(n_best.values()))]

    def _syllables(self, tokens: list[tuple[int, int]]) -> list[Syllable | Segment]:
        """Tokens with the rows of their peaks as syllables."""
        pinyin, rows = self._spoken([token for token, _ in tokens], [row for _, row in tokens])
        return [Syllable(one, (row + 0.5) * self._row_seconds) for one, row in zip(pinyin, rows, strict=True)]

    def _spoken(self, tokens: Sequence[int], rows: Sequence[int]) -> tuple[tuple[str, ...], list[int]]:
        """Syllables and the rows of their peaks, without the space token."""
        names = self._vocabulary.decode(tokens)
        kept = [(name, row) for name, row in zip(names, rows, strict=True) if name != SPACE]
        return tuple(name for name, _ in kept), [row for _, row in kept]
