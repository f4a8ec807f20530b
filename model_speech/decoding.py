"""CTC decoding: logits (batch, frames, classes) in, token hypotheses with scores and times out. NumPy only.

Greedy takes the best class of each frame; `beam_search` sums over the alignments of each label sequence
(prefix beam search: Graves, "Supervised Sequence Labelling with Recurrent Neural Networks", 2012, section
7.5; Hannun et al., arXiv:1408.2873). Both work on a whole batch at once, in the log domain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from model_speech.alignment import align

# Odd multiplier of the rolling prefix hash (the golden ratio in 64 bits, as in Knuth's multiplicative hash).
HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Hypothesis:
    """One reading of an utterance."""

    tokens: tuple[int, ...]
    score: (
        float  # natural-log probability: of the one best alignment (greedy), or of all that were kept (beam)
    )
    frames: tuple[int, ...]  # output frame in which each token peaks


def greedy_decode(logits: np.ndarray, lengths: np.ndarray, blank: int) -> list[Hypothesis]:
    """Best class of each frame, repeats merged, blanks dropped.

    Args:
        logits: (B, T, C) float; log-probabilities do as well.
        lengths: (B,) int, output frames that count.
        blank: class of the blank.

    Returns:
        B hypotheses.
    """
    classes = logits.argmax(axis=-1)  # (B, T)
    best = np.take_along_axis(logits, classes[..., None], axis=-1)[..., 0].astype(np.float64)
    scores = best - _log_sum_exp(logits)  # (B, T)
    return [
        _collapse(row[:length], score[:length], blank)
        for row, score, length in zip(classes, scores, np.asarray(lengths), strict=True)
    ]


def beam_search(
    logits: np.ndarray, lengths: np.ndarray, blank: int, beam: int = 10, n_best: int = 1, candidates: int = 40
) -> list[list[Hypothesis]]:
    """Most probable label sequences, each summed over its alignments.

    Args:
        logits: (B, T, C) float; log-probabilities do as well.
        lengths: (B,) int, output frames that count.
        blank: class of the blank.
        beam: prefixes kept after each frame.
        n_best: hypotheses returned of each utterance, at most ``beam``.
        candidates: classes, the best of each frame, that may extend a prefix.

    Returns:
        B lists of up to ``n_best`` distinct hypotheses, best first (fewer, if no others are possible).
    """
    lengths = np.asarray(lengths)
    order = np.argsort(-lengths, kind="stable")  # longest first: those still running are the first rows
    logits, lengths = logits[order], lengths[order]
    log_probabilities = logits - _log_sum_exp(logits)[..., None].astype(np.float32)
    beams = _Beams.start(len(logits), logits.shape[1], beam)
    likeliest = _likeliest_classes(logits, blank, candidates)  # (B, T, K)
    for time in range(int(lengths[:1].sum())):
        running = int((lengths > time).sum())
        beams.advance(time, log_probabilities[:running, time], likeliest[:running, time], blank)
    readings = beams.readings(n_best)
    rows = np.repeat(np.arange(len(logits)), [len(reading) for reading in readings])
    sequences = [tokens for reading in readings for tokens, _ in reading]
    frames = iter(align(log_probabilities, lengths, rows, sequences, blank))
    found = [[Hypothesis(tokens, score, next(frames)) for tokens, score in reading] for reading in readings]
    return [found[row] for row in np.argsort(order)]


@dataclass
class _Beams:
    """The prefixes kept of each of B utterances, best first, and how they came about.

    A prefix is known by a 64-bit hash of its tokens: one that was dropped and found again is the same.
    """

    blank_ended: np.ndarray  # (B, N) float64, log-probability of the alignments that end in the blank
    token_ended: np.ndarray  # (B, N) float64, of those that end in the last token
    last: np.ndarray  # (B, N) int, last token; -1 of the empty prefix
    prefix: np.ndarray  # (B, N) uint64, hash of the prefix
    parent: np.ndarray  # (B, N) uint64, hash of the prefix without its last token
    origins: np.ndarray  # (T, B, N) int16, which prefix of the frame before was kept or extended
    added: np.ndarray  # (T, B, N) int32, the token by which it was extended, or -1

    @staticmethod
    def start(batch: int, time: int, beam: int) -> _Beams:
        """The empty prefix alone, with probability 1."""
        blank_ended = np.full((batch, beam), -np.inf)
        blank_ended[:, 0] = 0.0
        unused = np.arange(beam, dtype=np.uint64)[None].repeat(batch, axis=0)
        return _Beams(
            blank_ended=blank_ended,
            token_ended=np.full((batch, beam), -np.inf),
            last=np.full((batch, beam), -1),
            prefix=unused,
            parent=unused + np.uint64(beam),
            origins=np.broadcast_to(np.arange(beam, dtype=np.int16), (time, batch, beam)).copy(),
            added=np.full((time, batch, beam), -1, np.int32),
        )

    def advance(self, time: int, log_probabilities: np.ndarray, classes: np.ndarray, blank: int) -> None:
        """Take one frame into the first R utterances.

        Args:
            time: index of the frame.
            log_probabilities: (R, C).
            classes: (R, K), those that may extend a prefix.
            blank: class of the blank.
        """
        running, beam = len(classes), self.last.shape[1]
        blank_ended, token_ended = self.blank_ended[:running], self.token_ended[:running]  # (R, N)
        last, prefix, parent = self.last[:running], self.prefix[:running], self.parent[:running]
        total = np.logaddexp(blank_ended, token_ended)
        known = np.take_along_axis(log_probabilities, np.maximum(last, 0), axis=1)
        known = np.where(last >= 0, known, -np.inf)

        # Extensions (R, N, K): a repeat of the last token is a token of its own only after a blank.
        # (The blank is among the classes only where they are fewer than K that are possible at all.)
        entering = np.where(classes == blank, -np.inf, np.take_along_axis(log_probabilities, classes, axis=1))
        repeated = last[:, :, None] == classes[:, None, :]
        extended = np.where(repeated, blank_ended[:, :, None], total[:, :, None])
        extended = extended + entering[:, None, :]

        # An extension that makes a prefix that is here already (its child) is not new: its mass goes there.
        is_mother = parent[:, :, None] == prefix[:, None, :]  # (R, N child, N mother)
        row, child = np.nonzero(is_mother.any(axis=2) & (total > -np.inf))
        mother = is_mother[row, child].argmax(axis=1)
        same = last[row, mother] == last[row, child]
        joining = np.full_like(total, -np.inf)
        joining[row, child] = np.where(same, blank_ended[row, mother], total[row, mother]) + known[row, child]
        pair, column = np.nonzero(classes[row] == last[row, child][:, None])
        extended[row[pair], mother[pair], column] = -np.inf

        kept_blank = total + log_probabilities[:, blank : blank + 1]
        kept_token = np.logaddexp(token_ended + known, joining)
        kept = np.logaddexp(kept_blank, kept_token)
        scores = np.concatenate([kept, extended.reshape(running, -1)], axis=1)  # (R, N + N K)
        chosen = _highest(scores, beam)
        is_new = chosen >= beam
        origin = np.where(is_new, (chosen - beam) // classes.shape[1], chosen)
        token = np.take_along_axis(classes, (chosen - beam) % classes.shape[1], axis=1)

        def inherit(values):
            return np.take_along_axis(values, origin, axis=1)

        self.blank_ended[:running] = np.where(is_new, -np.inf, inherit(kept_blank))
        self.token_ended[:running] = np.where(
            is_new, np.take_along_axis(scores, chosen, 1), inherit(kept_token)
        )
        self.parent[:running] = np.where(is_new, inherit(prefix), inherit(parent))
        self.prefix[:running] = np.where(is_new, _hash(inherit(prefix), token), inherit(prefix))
        self.last[:running] = np.where(is_new, token, inherit(last))
        self.origins[time, :running] = origin
        self.added[time, :running] = np.where(is_new, token, -1)

    def readings(self, n_best: int) -> list[list[tuple[tuple[int, ...], float]]]:
        """The best sequences of each utterance with their log-probabilities, best first."""
        scores = np.logaddexp(self.blank_ended, self.token_ended)[:, :n_best]  # (B, n)
        rows, place = np.indices(scores.shape)
        tokens = np.empty((len(self.added), *scores.shape), self.added.dtype)  # (T, B, n)
        for time in reversed(range(len(self.added))):
            tokens[time] = self.added[time, rows, place]
            place = self.origins[time, rows, place]
        return [
            [
                (tuple(column[column >= 0].tolist()), float(score))
                for column, score in zip(tokens[:, row].T, scores[row], strict=True)
                if score > -np.inf
            ]
            for row in range(len(scores))
        ]


def _highest(scores: np.ndarray, count: int) -> np.ndarray:
    """Indices of the ``count`` highest of each row (R, M), highest first: (R, count)."""
    some = np.argpartition(scores, -count, axis=1)[:, -count:]
    order = np.argsort(-np.take_along_axis(scores, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1)


def _hash(prefix: np.ndarray, token: np.ndarray) -> np.ndarray:
    """Hash of a prefix with one token more, uint64."""
    mixed = (prefix ^ (token + 1).astype(np.uint64)) * HASH_MULTIPLIER
    return mixed ^ (mixed >> np.uint64(29))


def _likeliest_classes(logits: np.ndarray, blank: int, count: int) -> np.ndarray:
    """The ``count`` likeliest classes of each frame but for the blank, in no order: (B, T, C) → (B, T, K)."""
    without_blank = logits.copy()
    without_blank[..., blank] = -np.inf
    count = min(count, logits.shape[-1] - 1)
    return np.argpartition(without_blank, -count, axis=-1)[..., -count:]


def _log_sum_exp(logits: np.ndarray) -> np.ndarray:
    """Over the last axis, (B, T, C) → (B, T) float64."""
    highest = logits.max(axis=-1, keepdims=True)
    return highest[..., 0] + np.log(np.exp(logits - highest).sum(axis=-1, dtype=np.float64))


def _collapse(classes: np.ndarray, scores: np.ndarray, blank: int) -> Hypothesis:
    """A path (T,) of one class a frame, with the log-probability of each, as a hypothesis."""
    starts = np.flatnonzero(np.diff(classes, prepend=-1))
    starts_and_end = np.append(starts, len(classes))
    peaks = [
        int(start + scores[start:end].argmax())
        for start, end in zip(starts, starts_and_end[1:], strict=True)
        if classes[start] != blank
    ]
    return Hypothesis(tuple(classes[peaks].tolist()), float(scores.sum()), tuple(peaks))
