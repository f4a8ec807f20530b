"""Finds utterances in a stream of CTC logits: an utterance ends after a run of blanks. NumPy only.

Each new row of logits (an output frame) may complete a syllable, which gives a partial result of the
utterance; its end gives its segments. An `UtteranceDecoder` decodes the logits.
"""

import dataclasses
import math
from typing import Protocol

import numpy as np

from utils.hypotheses.recognition import Recognition
from utils.vocabulary import SPACE, Vocabulary

PAUSE_SECONDS = 0.8
"""A pause of this length ends an utterance: a speaker who looks for a word rarely stops for longer."""
MARGIN_SECONDS = 0.24  # part of a pause that belongs to the utterance beside it
# Speech without a pause is cut between two syllables after this time; a tone that the network takes for one
# endless syllable is cut after twice the time. This bounds the memory.
MAX_SECONDS = 20.0


class UtteranceDecoder(Protocol):
    """Decodes the logits (T, C), T ≥ 1, of an utterance; ``start`` and ``seconds``: its start and length."""

    def partial(self, logits: np.ndarray, start: float, seconds: float) -> Recognition:
        """A partial result of an utterance that goes on, quickly; ``stable`` is 0."""

    def final(self, logits: np.ndarray, start: float, seconds: float) -> list[Recognition]:
        """The segments of an utterance that has ended; empty if it has no syllable."""


class UtteranceSegmenter:
    """Finds the utterances in rows of logits; decodes each at every new syllable, and when it has ended.

    ``row_seconds`` is the time from one row to the next.
    """

    def __init__(self, vocabulary: Vocabulary, decoder: UtteranceDecoder, row_seconds: float):
        self._decoder, self._row_seconds = decoder, row_seconds
        self._blank = vocabulary.blank_index
        self._soundless = {self._blank} | ({vocabulary.index(SPACE)} if SPACE in vocabulary else set())
        self._pause, self._margin, self._max_rows = (
            max(1, round(seconds / row_seconds)) for seconds in (PAUSE_SECONDS, MARGIN_SECONDS, MAX_SECONDS)
        )
        self.reset()

    def reset(self) -> None:
        """Start a new stream."""
        self._held: list[np.ndarray] = []  # rows (C,) of the current utterance, or the margin before it
        self._row_count = 0  # since the start of the stream
        self._blank_rows = 0  # since the last row that wasn't blank
        self._speaking = False
        self._class = self._blank  # best class of the last row
        self._shown = False  # whether the last partial result of the utterance has syllables

    def feed(self, rows: np.ndarray, behind: bool = False) -> list[Recognition]:
        """Process the next rows (m, C); return the events that they complete, in order.

        Args:
            rows: log-probabilities or logits.
            behind: more rows are waiting: no partial results are needed.
        """
        events: list[Recognition] = []
        new = False
        for row in rows:
            ended, begun = self._feed_row(row)
            new = begun or (new and not ended)
            events += ended
        if new and not behind:
            events.append(self._partial())
        return events

    def flush(self, length: float = math.inf) -> list[Recognition]:
        """Return the events that the end of the stream completes; then `reset`.

        ``length``: seconds of the stream, if its last row lasts longer.
        """
        events = self._end(len(self._held), length) if self._speaking else []
        self.reset()
        return events

    def _feed_row(self, row: np.ndarray) -> tuple[list[Recognition], bool]:
        """The events of an utterance that ends with a row, and whether a syllable begins with the row."""
        best, events = int(row.argmax()), []
        begun = best != self._class and best not in self._soundless
        rows = len(self._held)
        limit = self._max_rows if best != self._class else 2 * self._max_rows
        if self._speaking and rows >= limit:
            events += self._end(rows)
        self._held.append(row)
        self._row_count += 1
        self._class = best
        if best != self._blank:
            self._speaking, self._blank_rows = True, 0
            return events, begun
        self._blank_rows += 1
        if self._speaking and self._blank_rows >= self._pause:
            events += self._end(len(self._held) - self._pause + self._margin)
        elif not self._speaking:
            del self._held[: -self._margin]
        return events, begun

    def _partial(self) -> Recognition:
        """The utterance so far, all of it stable: a causal network does not revise its output."""
        start = (self._row_count - len(self._held)) * self._row_seconds
        partial = self._decoder.partial(np.stack(self._held), start, len(self._held) * self._row_seconds)
        self._shown = bool(partial.pinyin)
        return dataclasses.replace(partial, stable=len(partial.pinyin))

    def _end(self, rows: int, latest: float = math.inf) -> list[Recognition]:
        """Decode the utterance of the first ``rows`` held rows, which ends at ``latest``, and drop them.

        If it has no segment, a partial result without syllables withdraws those before.
        """
        logits = np.stack(self._held[:rows])  # (rows, C)
        start = (self._row_count - len(self._held)) * self._row_seconds
        del self._held[:rows]
        self._speaking = False
        seconds = min(rows * self._row_seconds, latest - start)
        events: list[Recognition] = [*self._decoder.final(logits, start, seconds)]
        if not events and self._shown:
            events = [Recognition(start, start + seconds, is_final=False)]
        self._shown = False
        return events
