"""CTC decoding: logits (batch, frames, classes) in, token hypotheses with scores and times out. NumPy only.

Greedy takes the best class of each frame; `beam_search` sums over the alignments of each label sequence
(prefix beam search: Graves, "Supervised Sequence Labelling with Recurrent Neural Networks", 2012, section
7.5; Hannun et al., arXiv:1408.2873). Both work on a whole batch at once, in the log domain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from model_speech.ctc.alignment import align
from model_speech.ctc.shallow_fusion import Fusion

# Odd multiplier of the rolling prefix hash (the golden ratio in 64 bits, as in Knuth's multiplicative hash).
HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
# A class less probable than this extends no prefix. Of 443 real utterances, none is read otherwise for that.
LEAST_PROBABILITY = 4.5e-5


@dataclass(frozen=True)
class Hypothesis:
    """One reading of an utterance."""

    tokens: tuple[int, ...]
    # Natural-log probability: of the one best alignment (greedy), or of all that were kept (beam); with
    # fusion, what the language model adds is in it.
    score: float
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
    logits: np.ndarray,
    lengths: np.ndarray,
    blank: int,
    beam: int = 10,
    n_best: int = 1,
    candidates: int = 40,
    fusion: Fusion | None = None,
) -> list[list[Hypothesis]]:
    """Most probable label sequences, each summed over its alignments.

    Args:
        logits: (B, T, C) float; log-probabilities do as well.
        lengths: (B,) int, output frames that count.
        blank: class of the blank.
        beam: prefixes kept after each frame.
        n_best: hypotheses returned of each utterance, at most ``beam``.
        candidates: classes, the best of each frame, that may extend a prefix; none with a probability below
            :data:`LEAST_PROBABILITY`.
        fusion: a language model that has a say in which prefixes are kept and which is best; it is then part
            of the scores.

    Returns:
        B lists of up to ``n_best`` distinct hypotheses, best first (fewer, if no others are possible).
    """
    lengths = np.asarray(lengths)
    order = np.argsort(-lengths, kind="stable")  # longest first: those still running are the first rows
    logits, lengths = logits[order], lengths[order]
    log_probabilities = logits - _log_sum_exp(logits)[..., None].astype(np.float32)
    classes, entering = _candidates(log_probabilities, blank, candidates)  # (B, T, K) each
    beams = _Beams.start(len(logits), logits.shape[1], beam, fusion)
    for time in range(int(lengths[:1].sum())):
        running = slice(0, int((lengths > time).sum()))
        beams.advance(
            time, log_probabilities[running, time], classes[running, time], entering[running, time], blank
        )
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
    fusion: Fusion | None
    fused: np.ndarray  # (B, N) float64, what the language model has added so far
    history: np.ndarray  # (B, N, H) int, the language model's ids of the last tokens, oldest first

    @staticmethod
    def start(batch: int, time: int, beam: int, fusion: Fusion | None) -> _Beams:
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
            fusion=fusion,
            fused=np.zeros((batch, beam)),
            history=np.zeros((batch, beam, fusion.history if fusion else 0), np.int64),
        )

    def advance(
        self, time: int, log_probabilities: np.ndarray, classes: np.ndarray, entering: np.ndarray, blank: int
    ) -> None:
        """Take one frame into the first R utterances.

        Args:
            time: index of the frame.
            log_probabilities: (R, C).
            classes: (R, K), those that may extend a prefix, best first.
            entering: (R, K), their log-probabilities.
            blank: class of the blank.
        """
        running, beam = len(classes), self.last.shape[1]
        blank_ended, token_ended = self.blank_ended[:running], self.token_ended[:running]  # (R, N)
        last, prefix, parent = self.last[:running], self.prefix[:running], self.parent[:running]
        fused, history = self.fused[:running], self.history[:running]
        total = np.logaddexp(blank_ended, token_ended)
        known = np.take_along_axis(log_probabilities, np.maximum(last, 0), axis=1)
        known = np.where(last >= 0, known, -np.inf)

        # An extension that makes a prefix that is here already (its child) is not new: its mass goes there.
        is_mother = parent[:, :, None] == prefix[:, None, :]  # (R, N child, N mother)
        row, child = np.nonzero(is_mother.any(axis=2) & (total > -np.inf))
        mother = is_mother[row, child].argmax(axis=1)
        same = last[row, mother] == last[row, child]
        joining = np.full_like(total, -np.inf)
        joining[row, child] = np.where(same, blank_ended[row, mother], total[row, mother]) + known[row, child]
        kept_blank = total + log_probabilities[:, blank : blank + 1]
        kept_token = np.logaddexp(token_ended + known, joining)
        kept = np.logaddexp(kept_blank, kept_token)

        # The prefixes that stay as they are fill the beam: an extension below the least of them is out.
        most = self.fusion.most if self.fusion else 0.0
        least = (kept + fused).min(axis=1)  # (R,); -inf until the beam is full
        width = _reaching(least - (total + fused).max(axis=1) - most, entering)
        classes, entering = classes[:, :width], entering[:, :width]

        # Extensions (R, N, K): a repeat of the last token is a token of its own only after a blank.
        repeated = last[:, :, None] == classes[:, None, :]
        extended = np.where(repeated, blank_ended[:, :, None], total[:, :, None]) + entering[:, None, :]
        pair, column = np.nonzero(classes[row] == last[row, child][:, None])
        extended[row[pair], mother[pair], column] = -np.inf

        scores = np.concatenate([kept, extended.reshape(running, -1)], axis=1)  # (R, N + N K)
        if self.fusion:
            hopeful = (extended > -np.inf) & (extended + fused[:, :, None] + most >= least[:, None, None])
            at, old, new = np.nonzero(hopeful)
            gained = np.full_like(extended, -np.inf)
            gained[at, old, new] = fused[at, old] + self.fusion.gains(history[at, old], classes[at, new])
            gained = np.concatenate([fused, gained.reshape(running, -1)], axis=1)
        chosen = _highest(scores + gained if self.fusion else scores, beam)
        is_new = chosen >= beam
        origin = np.where(is_new, (chosen - beam) // width, chosen)
        place = origin + beam * np.arange(running)[:, None]  # in the flattened (R, N)
        token = np.take_along_axis(classes, (chosen - beam) % width, axis=1)
        mothers = prefix.take(place)

        self.token_ended[:running] = np.where(
            is_new, np.take_along_axis(scores, chosen, axis=1), kept_token.take(place)
        )
        self.blank_ended[:running] = np.where(is_new, -np.inf, kept_blank.take(place))
        self.parent[:running] = np.where(is_new, mothers, parent.take(place))
        self.prefix[:running] = np.where(is_new, _hash(mothers, token), mothers)
        self.last[:running] = np.where(is_new, token, last.take(place))
        self.origins[time, :running] = origin
        self.added[time, :running] = np.where(is_new, token, -1)
        if self.fusion:
            self.fused[:running] = np.take_along_axis(gained, chosen, axis=1)
            past = history.reshape(-1, history.shape[2])[place]  # (R, N, H)
            self.history[:running] = self.fusion.remember(past, np.where(is_new, token, -1))

    def readings(self, n_best: int) -> list[list[tuple[tuple[int, ...], float]]]:
        """The best sequences of each utterance with their scores, best first."""
        scores = np.logaddexp(self.blank_ended, self.token_ended) + self.fused  # (B, N)
        if self.fusion:
            scores += self.fusion.ends(self.history)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :n_best]
        scores = np.take_along_axis(scores, best, axis=1)  # (B, n)
        rows, place = np.indices(scores.shape)[0], best
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


def _reaching(least: np.ndarray, entering: np.ndarray) -> int:
    """How many of the classes (R, K), best first, reach the least log-probability (R,) in any row; ≥ 1."""
    return max(1, int((entering >= least[:, None]).sum(axis=1).max()))


def _highest(scores: np.ndarray, count: int) -> np.ndarray:
    """Indices of the ``count`` highest of each row (R, M), highest first: (R, count)."""
    some = np.argpartition(scores, -count, axis=1)[:, -count:]
    order = np.argsort(-np.take_along_axis(scores, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1)


def _hash(prefix: np.ndarray, token: np.ndarray) -> np.ndarray:
    """Hash of a prefix with one token more, uint64."""
    mixed = (prefix ^ (token + 1).astype(np.uint64)) * HASH_MULTIPLIER
    return mixed ^ (mixed >> np.uint64(29))


def _candidates(log_probabilities: np.ndarray, blank: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The classes of each frame that may extend a prefix, and their log-probabilities, best first.

    In most frames only a few classes reach the least probability at all: these are sorted, not all.

    Args:
        log_probabilities: (B, T, C).
        blank: not among the candidates.
        count: at most so many.

    Returns:
        (B, T, K) int and float, K ≤ ``count``; where a frame has fewer, a log-probability of -inf fills up.
    """
    batch, time, size = log_probabilities.shape
    flat = log_probabilities.reshape(-1)
    likely = np.flatnonzero(flat > np.log(LEAST_PROBABILITY))
    likely = likely[likely % size != blank]
    frame = likely // size
    # Frame after frame, the best class first: all log-probabilities that are left lie in one unit of the key.
    likely = likely[np.argsort(frame + flat[likely] / np.log(LEAST_PROBABILITY))]
    numbers = np.bincount(frame, minlength=batch * time)
    place = np.arange(len(frame)) - np.repeat(np.cumsum(numbers) - numbers, numbers)  # within the frame
    width = max(1, min(count, int(numbers.max(initial=0))))
    kept = place < width
    likely, frame, place = likely[kept], frame[kept], place[kept]
    classes = np.zeros((batch * time, width), np.int64)
    entering = np.full((batch * time, width), -np.inf, flat.dtype)
    classes[frame, place], entering[frame, place] = likely % size, flat[likely]
    return classes.reshape(batch, time, width), entering.reshape(batch, time, width)


def _log_sum_exp(logits: np.ndarray) -> np.ndarray:
    """Over the last axis, (B, T, C) → (B, T) float64; utterance by utterance, which the cache can hold."""
    result = np.empty(logits.shape[:2])
    for row, one in zip(result, logits, strict=True):
        highest = one.max(axis=-1, keepdims=True, initial=-np.inf)
        row[:] = highest[:, 0] + np.log(np.exp(one - highest).sum(axis=-1).astype(np.float64))
    return result


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
