"""Detects the phrases of a list in the logits of a stream, with time and score. A row is one output frame.

A phrase may begin and end anywhere. Its score is that of its best path minus that of the best free path
through the same rows, at most 0: a Viterbi search for phrases against a free syllable loop. It is detected
when the score reaches its threshold (:mod:`recognition.phrases.thresholds`); then nothing is detected for the
refractory time. The threshold of a long phrase is reached before its last syllable is spoken. The spotter
therefore waits until the score has stopped rising; where another phrase differs in the last syllable only, or
goes on longer, it waits for that one too, and takes the best.
"""

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from model_speech.ctc.best_sequences import SequenceTable
from recognition.phrases.phrase_list import Phrase
from recognition.phrases.search import known_sequences, phrase_log_probs
from recognition.phrases.thresholds import DEFAULT, PhraseThresholds
from streaming.keyword import Detection
from utils.arrays import log_sum_exp
from utils.vocabulary import Vocabulary

REFRACTORY_SECONDS = 1.5
SETTLE_SECONDS = 0.3  # without a higher score, before a phrase is detected
SYLLABLE_COST = 3.0  # of a longer phrase: a further syllable must fit better than this (nats)
HALF_SYLLABLE = 0.12  # seconds from the beginning of a syllable to its middle
LONGEST_SECONDS, LONGEST_SYLLABLE = 2.0, 0.5  # of a phrase, and of each syllable if that is more


class PhraseSpotter:
    """Finds phrases in a stream.

    Args:
        phrases: see :func:`recognition.phrases.phrase_list.read_phrases`.
        vocabulary: the acoustic model's.
        row_seconds: seconds from one row of logits to the next.
        alarms_per_hour: allowed false alarms of each phrase in an hour of other speech.
        thresholds: of the acoustic model.
        source: name of the phrase file, for messages.
        lead_seconds: of the acoustic model, see :class:`recognition.confidence.Calibration`.

    Raises:
        PhraseError: the acoustic model does not know the syllables of a phrase.
        ConfigError: the allowed false alarms are not above 0.
    """

    def __init__(
        self,
        phrases: Sequence[Phrase],
        vocabulary: Vocabulary,
        row_seconds: float,
        alarms_per_hour: float = 1.0,
        thresholds: PhraseThresholds = DEFAULT,
        source: str = "phrases",
        lead_seconds: float = 0.0,
    ):
        sequences, owners = known_sequences(phrases, vocabulary, source)
        self.phrases, self._table = tuple(phrases), SequenceTable.build(sequences, owners)
        self._vocabulary, self._blank = vocabulary, vocabulary.blank_index
        self._row_seconds, self._before_peak = row_seconds, HALF_SYLLABLE - lead_seconds
        lengths = self._table.lengths
        self._longest = np.maximum(LONGEST_SECONDS, LONGEST_SYLLABLE * lengths) / row_seconds  # (S,) rows
        self._thresholds = thresholds.at(alarms_per_hour, lengths.tolist())  # (S,)
        seconds = np.maximum(SETTLE_SECONDS, LONGEST_SYLLABLE * _syllables_to_wait(self._table))
        self._waits = np.ceil(seconds / row_seconds).astype(int)  # (S,) rows
        self.reset()

    def reset(self) -> None:
        """Start a new stream."""
        self._rows, self._ignored_until = 0, 0.0
        self._candidate: tuple[float, Detection] | None = None  # with its value in the comparison
        self._decided_at = 0  # row after which the candidate is detected
        self._forget()

    def feed(self, logits: np.ndarray) -> list[Detection]:
        """Search the next rows.

        Args:
            logits: (n, C) float.

        Returns:
            the phrases that are decided with them, in order, with the times of their beginnings and ends. A
            score is the geometric mean, for each syllable, of its probability relative to that of the best
            free syllables.
        """
        detections = []
        for row in self._relative(logits):
            scores = self._advance(row)
            if self._rows * self._row_seconds > self._ignored_until:
                self._compare(scores)
            if self._candidate and self._rows >= self._decided_at:
                detections += self.flush()
                self._forget()
        return detections

    def flush(self) -> list[Detection]:
        """The phrase that the spotter waits with; call it at the end of the stream too."""
        if self._candidate is None:
            return []
        (_, detection), self._candidate = self._candidate, None
        self._ignored_until = max(detection.seconds + REFRACTORY_SECONDS, self._rows * self._row_seconds)
        return [detection]

    def _compare(self, scores: np.ndarray) -> None:
        """Take the best of the sequences (S,) that have reached their thresholds as the candidate."""
        values = np.where(scores >= self._thresholds, scores + SYLLABLE_COST * self._table.lengths, -np.inf)
        best = int(values.argmax())
        if values[best] > (self._candidate[0] if self._candidate else -np.inf):
            length = self._table.lengths[best]
            score, threshold = (math.exp(each[best] / length) for each in (scores, self._thresholds))
            text = self.phrases[self._table.groups[best]].text
            end = round(self._rows * self._row_seconds, 6)
            peak = (self._token_start[best, length - 1] + 0.5) * self._row_seconds  # of the first syllable
            start = max(0.0, round(peak - self._before_peak, 6))
            self._candidate = float(values[best]), Detection(end, text, score, threshold, start)
            self._decided_at = self._rows + self._waits[best]

    def scores(self, logits: np.ndarray) -> np.ndarray:
        """The score of each phrase (P,) that ends with each row: (n, P); -inf if it is too long."""
        starts = np.flatnonzero(np.diff(self._table.groups, prepend=-1))
        rows = [np.maximum.reduceat(self._advance(row), starts) for row in self._relative(logits)]
        return np.array(rows).reshape(len(logits), len(self.phrases))

    def _forget(self) -> None:
        """Reset all paths. Column i of the scores: the path has emitted token i, then perhaps blanks."""
        self._in_token, self._in_blank = np.full((2, *self._table.tokens.shape), -np.inf)
        self._token_start, self._blank_start = np.zeros((2, *self._table.tokens.shape), int)

    def _relative(self, logits: np.ndarray) -> np.ndarray:
        """(n, C) log-probabilities minus the best one of each row."""
        log_probs = phrase_log_probs(logits, log_sum_exp(logits[None])[0], self._vocabulary)
        return log_probs - log_probs.max(axis=1, keepdims=True)

    def _advance(self, row: np.ndarray) -> np.ndarray:
        """Continue all paths with a row (C,); the scores (S,) of the sequences that end with it."""
        table = self._table
        in_blank = self._in_blank > self._in_token
        before = np.where(in_blank, self._in_blank, self._in_token)  # (S, L)
        before_start = np.where(in_blank, self._blank_start, self._token_start)
        entering, start = np.zeros_like(before), np.full_like(before_start, self._rows)
        entering[:, 1:] = np.where(table.repeats[:, 1:], self._in_blank[:, :-1], before[:, :-1])
        start[:, 1:] = np.where(table.repeats[:, 1:], self._blank_start[:, :-1], before_start[:, :-1])
        stays = self._in_token >= entering
        self._in_token = np.where(stays, self._in_token, entering) + row[table.tokens]
        self._token_start = np.where(stays, self._token_start, start)
        self._in_blank, self._blank_start = before + row[self._blank], before_start
        self._rows += 1
        self._in_token[self._rows - self._token_start > self._longest[:, None]] = -np.inf
        self._in_blank[self._rows - self._blank_start > self._longest[:, None]] = -np.inf
        return self._in_token[np.arange(len(table.lengths)), table.lengths - 1]


def _syllables_to_wait(table: SequenceTable) -> np.ndarray:
    """How many syllables another phrase may need to fit better than each sequence, (S,) int; 0: none can.

    Such a phrase has the same syllables but for the last one, and may be longer.
    """
    sequences = [tuple(tokens[:length]) for tokens, length in zip(table.tokens, table.lengths, strict=True)]
    # Of the sequences that begin with a prefix: their phrases, and the greatest length.
    phrases: dict[tuple[int, ...], set[int]] = defaultdict(set)
    longest: dict[tuple[int, ...], int] = defaultdict(int)
    for sequence, phrase in zip(sequences, table.groups.tolist(), strict=True):
        for end in range(len(sequence)):
            phrases[sequence[:end]].add(phrase)
            longest[sequence[:end]] = max(longest[sequence[:end]], len(sequence))
    beginnings = [sequence[:-1] for sequence in sequences]
    return np.array([longest[begin] - len(begin) if len(phrases[begin]) > 1 else 0 for begin in beginnings])
