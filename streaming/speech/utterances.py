"""Rows of logits of a stream in; syllables immediately, and utterances when they end, out. NumPy only."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from model_speech.ctc.decoder import Decoder
from model_speech.ctc.greedy import GreedyStream
from utils.hypotheses.phrases import PhraseResult
from utils.hypotheses.recognition import Alternative, Segment, phrase_segment, syllable_times
from utils.vocabulary import SPACE, Vocabulary

PAUSE_SECONDS = 0.8  # a pause of this length ends an utterance
MARGIN_SECONDS = 0.24  # part of a pause that belongs to the utterance beside it
# Speech without a pause is cut between two syllables after this time; a tone that the network takes for one
# endless syllable is cut after twice the time. This bounds the memory.
MAX_SECONDS = 20.0


@dataclass(frozen=True)
class Syllable:
    """A recognised syllable: canonical pinyin, and seconds since the start of the stream."""

    pinyin: str
    seconds: float


class PhraseSearch(Protocol):
    """Compares an utterance with a list of phrases."""

    def search(self, logits: np.ndarray, frame_seconds: float, start: float) -> PhraseResult:
        """Logits (T, C), seconds from row to row, and start of the utterance in the stream, in seconds."""


class UtteranceDecoder:
    """Decodes rows greedily as they arrive, and each utterance again as a whole.

    Args:
        vocabulary: classes of the rows' columns.
        decoder: decodes the whole utterances.
        row_seconds: seconds between two rows.
        phrases: a list of phrases: only these are recognised.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        decoder: Decoder,
        row_seconds: float,
        phrases: PhraseSearch | None = None,
    ):
        self._phrases = phrases
        self._vocabulary, self._decoder, self._row_seconds = vocabulary, decoder, row_seconds
        self._pause, self._margin, self._max_rows = (
            max(1, round(seconds / row_seconds)) for seconds in (PAUSE_SECONDS, MARGIN_SECONDS, MAX_SECONDS)
        )
        self._greedy = GreedyStream(vocabulary.blank_index)
        self.reset()

    def reset(self) -> None:
        """Start a new stream."""
        self._greedy.reset()
        self._held: list[np.ndarray] = []  # rows (C,) of the current utterance, or the margin before it
        self._row_count = 0  # since the start of the stream
        self._blank_rows = 0  # since the last row that wasn't blank
        self._speaking = False
        self._class = self._vocabulary.blank_index  # best class of the last row

    def feed(self, rows: np.ndarray) -> list[Syllable | Segment]:
        """Process the next rows (m, C); return the events that they complete, in order."""
        return [event for row in rows for event in self._feed_row(row)]

    def flush(self) -> list[Syllable | Segment]:
        """Return the events that the end of the stream completes; then `reset`."""
        events = self._syllables(self._greedy.flush())
        if self._speaking:
            events += self._end(len(self._held))
        self.reset()
        return events

    def _feed_row(self, row: np.ndarray) -> list[Syllable | Segment]:
        best = int(row.argmax())
        events = self._syllables(self._greedy.feed(row[None]))
        rows = len(self._held)
        limit = self._max_rows if best != self._class else 2 * self._max_rows
        if self._speaking and rows >= limit:
            events += self._end(rows)
        self._held.append(row)
        self._row_count += 1
        self._class = best
        if best != self._vocabulary.blank_index:
            self._speaking, self._blank_rows = True, 0
            return events
        self._blank_rows += 1
        if self._speaking and self._blank_rows >= self._pause:
            events += self._end(len(self._held) - self._pause + self._margin)
        elif not self._speaking:
            del self._held[: -self._margin]
        return events

    def _end(self, rows: int) -> list[Segment]:
        """Decode the utterance of the first ``rows`` held rows and drop them; empty if it has no syllable."""
        logits = np.stack(self._held[:rows])  # (rows, C)
        start = (self._row_count - len(self._held)) * self._row_seconds
        del self._held[:rows]
        self._speaking = False
        (hypotheses,) = self._decoder.decode(logits[None], np.array([rows]))
        n_best: dict[tuple[str, ...], Alternative] = {}  # without spaces, some are equal
        for hypothesis in hypotheses:
            pinyin, _ = self._spoken(hypothesis.tokens, hypothesis.frames)
            n_best.setdefault(pinyin, Alternative(pinyin, "", hypothesis.score))
        pinyin, frames = self._spoken(hypotheses[0].tokens, hypotheses[0].frames)
        if not pinyin:
            return []
        seconds = rows * self._row_seconds
        if self._phrases:
            result = self._phrases.search(logits, self._row_seconds, start)
            return [phrase_segment(result, start, seconds, pinyin, frames, self._row_seconds)]
        times = syllable_times(frames, self._row_seconds, seconds)
        stream_times = tuple((start + begin, start + end) for begin, end in times)
        return [Segment(start, start + seconds, stream_times, tuple(n_best.values()))]

    def _syllables(self, tokens: list[tuple[int, int]]) -> list[Syllable | Segment]:
        """Tokens and the rows of their peaks → syllables."""
        pinyin, rows = self._spoken([token for token, _ in tokens], [row for _, row in tokens])
        return [
            Syllable(name, (row + 0.5) * self._row_seconds) for name, row in zip(pinyin, rows, strict=True)
        ]

    def _spoken(self, tokens: Sequence[int], rows: Sequence[int]) -> tuple[tuple[str, ...], list[int]]:
        """Syllables and the rows of their peaks, without the space token."""
        names = self._vocabulary.decode(tokens)
        kept = [(name, row) for name, row in zip(names, rows, strict=True) if name != SPACE]
        return tuple(name for name, _ in kept), [row for _, row in kept]
