"""CTC prefix beam search: finds the n best token sequences for a batch of logits. NumPy only.

The search sums over the alignments of each token sequence (Graves, "Supervised Sequence Labelling with
Recurrent Neural Networks", 2012, section 7.5; Hannun et al., arXiv:1408.2873). It works on a whole batch at
once, with probabilities that are scaled every few frames: to compute with their logarithms would take most
of the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from model_speech.ctc.alignment import align
from model_speech.ctc.shallow_fusion import Fusion
from utils.arrays import log_sum_exp
from utils.hypotheses.recognition import Hypothesis

# Odd multiplier of the rolling prefix hash (the golden ratio in 64 bits, as in Knuth's multiplicative hash).
HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
# A less probable class extends no prefix. This changed none of 443 decoded recordings.
MIN_PROBABILITY = 4.5e-5
# The most probable prefix loses at most a factor of some 1e5 in a frame, and doubles have 1e308.
_SCALED_EVERY = 8  # frames
# Hashes of a prefix that is impossible, and of the parent that it and the empty prefix do not have.
_IMPOSSIBLE, _NO_PARENT = np.uint64(1), np.uint64(2)


def beam_search(
    logits: np.ndarray,
    lengths: np.ndarray,
    blank: int,
    beam: int = 10,
    n_best: int = 1,
    candidates: int = 40,
    fusion: Fusion | None = None,
) -> list[list[Hypothesis]]:
    """Find the most probable token sequences, each summed over its alignments.

    Args:
        logits: (B, T, C) float; log-probabilities work as well.
        lengths: (B,) int, number of valid output frames.
        blank: class of the blank.
        beam: prefixes kept after each frame.
        n_best: hypotheses returned per utterance, at most ``beam``.
        candidates: number of classes, the best of each frame, that may extend a prefix; classes with a
            probability below :data:`MIN_PROBABILITY` never do.
        fusion: a language model whose scores count when prefixes are compared; the hypotheses' scores
            include them.

    Returns:
        B lists of up to ``n_best`` distinct hypotheses, best first (fewer if no others are possible).
    """
    lengths = np.asarray(lengths)
    normaliser = log_sum_exp(logits)  # (B, T)
    classes, scores = _candidates(logits, normaliser, blank, candidates)  # (B, T, K) each
    order = np.argsort(-lengths, kind="stable")  # longest first: utterances still running are the first rows
    beams = _Beams(logits, normaliser, order, blank, beam, fusion)
    classes, probabilities = classes[order], np.exp(scores[order].astype(np.float64))
    for time in range(int(lengths.max(initial=0))):
        running = int((lengths > time).sum())
        beams.advance(time, classes[:running, time], probabilities[:running, time])
    decoded = [beams_of for _, beams_of in sorted(zip(order.tolist(), beams.sequences(n_best), strict=True))]
    rows = np.repeat(np.arange(len(logits)), [len(sequences) for sequences in decoded])
    all_tokens = [tokens for sequences in decoded for tokens, _ in sequences]
    frames = align(logits, lengths, rows, all_tokens, blank, normaliser)
    posteriors = _posteriors(logits, normaliser, rows, all_tokens, frames)
    peaks = zip(frames, posteriors, strict=True)
    return [[Hypothesis(tokens, score, *next(peaks)) for tokens, score in sequences] for sequences in decoded]


def _posteriors(
    logits: np.ndarray,
    normaliser: np.ndarray,
    rows: np.ndarray,
    sequences: Sequence[Sequence[int]],
    frames: Sequence[Sequence[int]],
) -> Iterator[tuple[float, ...]]:
    """The probabilities of each sequence's tokens in their frames, without the language model."""
    for row, tokens, peaks in zip(rows, sequences, frames, strict=True):
        at = list(peaks)
        yield tuple(np.exp(logits[row, at, list(tokens)] - normaliser[row, at]).tolist())


class _Scored(NamedTuple):
    """The N prefixes of the first R utterances after a frame, unchanged and extended by each of K classes.

    Attributes:
        stays_blank, stays_token: (R, N), probability of an unchanged prefix whose alignments end in the
            blank, or in the last token.
        extended: (R, N, K), probability of the extensions.
        gained: (R, N, K), the language model's scores of the extensions; None without a model.
        scores: (R, N + N K), of the unchanged prefixes and then of the extensions, by which the beam is
            chosen.
    """

    stays_blank: np.ndarray
    stays_token: np.ndarray
    extended: np.ndarray
    gained: np.ndarray | None
    scores: np.ndarray


class _Beams:
    """The N prefixes kept of each of B utterances, and the back pointers to read their tokens.

    A prefix is identified by a 64-bit hash of its tokens, so that one that was dropped and found again is
    the same prefix. Arrays are indexed flat, which is several times faster than by rows and columns.

    Args:
        logits: (B, T, C).
        normaliser: (B, T), log-sum-exp of the logits of each frame.
        order: (B,), the utterances, longest first; all attributes are in this order.
        blank: class of the blank.
        beam: N.
        fusion: a language model.

    Attributes:
        in_blank: (B, N) probability of the alignments that end in the blank; scaled, as ``in_token``.
        in_token: (B, N) probability of the alignments that end in the last token; scaled, as ``in_blank``.
        log_scale: (B,), logarithm of the factor that turns scaled probabilities into probabilities.
        last: (B, N) int, last token; the blank for the empty prefix.
        prefix: (B, N) uint64, hash of the prefix.
        parent: (B, N) uint64, hash of the prefix without its last token.
        origins: (T, B, N) int16, index of the previous frame's prefix that was kept or extended.
        added: (T, B, N) int32, the token by which it was extended, or -1.
        fusion_scores: (B, N), the language model's contribution so far.
        history: (B, N, H) int, the language model's ids of the last tokens, oldest first.
    """

    def __init__(
        self,
        logits: np.ndarray,
        normaliser: np.ndarray,
        order: np.ndarray,
        blank: int,
        beam: int,
        fusion: Fusion | None,
    ):
        batch, time, self._classes = logits.shape
        self._logits, self._normaliser = logits.reshape(-1), normaliser[order]
        self._utterances = (order * time * self._classes)[:, None]  # (B, 1), where each begins in the logits
        self._blank_probabilities = np.exp(logits[order, :, blank] - self._normaliser)
        self.fusion = fusion
        self.in_blank, self.in_token, self.log_scale = *np.zeros((2, batch, beam)), np.zeros(batch)
        self.last = np.full((batch, beam), blank)
        self.prefix = np.full((batch, beam), _IMPOSSIBLE)
        self.parent = np.full((batch, beam), _NO_PARENT)
        self.origins = np.broadcast_to(np.arange(beam, dtype=np.int16), (time, batch, beam)).copy()
        self.added = np.full((time, batch, beam), -1, np.int32)
        self.fusion_scores = np.full((batch, beam), -np.inf if fusion else 0.0)
        self.history = np.zeros((batch, beam, fusion.history if fusion else 0), np.int64)
        # The empty prefix is the first.
        self.in_blank[:, 0], self.prefix[:, 0], self.fusion_scores[:, 0] = 1.0, 0, 0.0

    def advance(self, time: int, classes: np.ndarray, probabilities: np.ndarray) -> None:
        """Process one frame of the first R utterances.

        Args:
            time: index of the frame.
            classes: (R, K), those that may extend a prefix, best first.
            probabilities: (R, K), of these classes.
        """
        running, beam = len(classes), self.last.shape[1]
        in_blank, in_token = self.in_blank[:running], self.in_token[:running]  # (R, N)
        last = self.last[:running]
        total = in_blank + in_token
        emitted = self._logits.take(self._utterances[:running] + (time * self._classes + last))
        repeat = np.exp(emitted - self._normaliser[:running, time, None])  # of the last token

        # An extension may give a prefix that is in the beam already (a child): its mass is added to the
        # child.
        child, mother = self._children(running)
        stays_token = in_token * repeat
        same = last.take(mother) == last.take(child)
        joining = np.where(same, in_blank.take(mother), total.take(mother)) * repeat.take(child)
        stays_token.reshape(-1)[child] += joining
        stays_blank = total * self._blank_probabilities[:running, time, None]
        kept = stays_blank + stays_token

        # The unchanged prefixes fill the beam: an extension with a lower score than all of them is pruned.
        boost, max_gain = self._boost(running)
        ranked = kept * boost
        threshold = ranked.min(axis=1)  # (R,); 0 until the beam is full
        best = (total * boost).max(axis=1) * max_gain
        width = _viable_count(threshold, best[:, None] * probabilities)
        classes = np.ascontiguousarray(classes[:, :width])

        # Extensions (R, N, K): a repetition of the last token is a new token only after a blank.
        repeated = last[:, :, None] == classes[:, None, :]
        extended = np.where(repeated, in_blank[:, :, None], total[:, :, None])
        extended *= probabilities[:, None, :width]
        pair, column = np.nonzero(classes.take(child // beam, axis=0) == last.take(child)[:, None])
        extended.reshape(-1)[mother.take(pair) * width + column] = 0.0
        gained = None
        scores = extended
        if self.fusion:
            scores = extended * boost[:, :, None]
            gained = self._gains(classes, scores, threshold / max_gain)
            scores *= np.exp(gained)
        scores = np.concatenate([ranked, scores.reshape(running, -1)], axis=1)  # (R, N + N K)
        self._keep_best(time, classes, _Scored(stays_blank, stays_token, extended, gained, scores))
        if time % _SCALED_EVERY == 0:
            self._scale()

    def _keep_best(self, time: int, classes: np.ndarray, scored: _Scored) -> None:
        """Fill the beam with the N best of the unchanged prefixes and their extensions.

        Args:
            time: index of the frame.
            classes: (R, K), those that extend a prefix.
            scored: the unchanged prefixes and their extensions.
        """
        (running, width), beam = classes.shape, self.last.shape[1]
        chosen = np.argpartition(scored.scores, -beam, axis=1)[:, -beam:]
        rows = np.arange(running)[:, None]
        is_new = chosen >= beam
        extension = np.where(is_new, chosen - beam, 0)
        origin = np.where(is_new, extension // width, chosen)
        token = classes.take(extension % width + width * rows)
        extension += beam * width * rows  # from here on flat, as the index of the origin
        flat = origin + beam * rows
        extended, stays_token = scored.extended.take(extension), scored.stays_token.take(flat)
        self.in_token[:running] = np.where(is_new, extended, stays_token)
        self.in_blank[:running] = np.where(is_new, 0.0, scored.stays_blank.take(flat))
        self.last[:running] = np.where(is_new, token, self.last[:running].take(flat))
        of_origin, of_parent = self.prefix[:running].take(flat), self.parent[:running].take(flat)
        self.parent[:running] = np.where(is_new, of_origin, of_parent)
        self.prefix[:running] = np.where(is_new, _hash(of_origin, token), of_origin)
        self.origins[time, :running] = origin
        self.added[time, :running] = token = np.where(is_new, token, -1)
        if self.fusion and scored.gained is not None:
            added = np.where(is_new, scored.gained.take(extension), 0.0)
            self.fusion_scores[:running] = self.fusion_scores[:running].take(flat) + added
            past = self.history.reshape(-1, self.history.shape[2])[flat]  # (R, N, H)
            self.history[:running] = self.fusion.extend_histories(past, token)
        impossible = np.nonzero(scored.scores.take(chosen + scored.scores.shape[1] * rows) == 0)
        if len(impossible[0]):
            self.prefix[impossible], self.parent[impossible] = _IMPOSSIBLE, _NO_PARENT
            self.in_token[impossible] = self.in_blank[impossible] = 0.0

    def _scale(self) -> None:
        """Make the largest probability of each utterance 1."""
        highest = np.maximum(self.in_blank, self.in_token).max(axis=1)
        self.in_blank /= highest[:, None]
        self.in_token /= highest[:, None]
        self.log_scale += np.log(highest)

    def _children(self, running: int) -> tuple[np.ndarray, np.ndarray]:
        """Flat indices of the prefixes that extend another one in the beam, and of these others."""
        beam = self.last.shape[1]
        child_of = self.parent[:running, :, None] == self.prefix[:running, None, :]  # (R, N child, N parent)
        found = np.flatnonzero(child_of)
        child = found // beam
        return child, child // beam * beam + found % beam

    def _boost(self, running: int) -> tuple[np.ndarray, float]:
        """The factor of each prefix by the language model (R, N), and the largest that a token can add."""
        if not self.fusion:
            return np.ones((running, 1)), 1.0
        scores = self.fusion_scores[:running]
        return np.exp(scores - scores.max(axis=1, keepdims=True)), float(np.exp(self.fusion.max_gain))

    def _gains(self, classes: np.ndarray, scores: np.ndarray, threshold: np.ndarray) -> np.ndarray:
        """Language model scores of extensions (R, N, K); -inf for those that cannot reach the beam.

        Args:
            classes: (R, K).
            scores: (R, N, K), of the extensions without the gain.
            threshold: (R,), score that an extension must reach.
        """
        assert self.fusion
        _, beam, width = scores.shape
        viable = np.flatnonzero((scores > 0) & (scores >= threshold[:, None, None]))
        extended = viable // width
        histories = self.history.reshape(-1, self.history.shape[2]).take(extended, axis=0)
        tokens = classes.take(extended // beam * width + viable % width)
        gained = np.full(scores.shape, -np.inf)
        gained.reshape(-1)[viable] = self.fusion.gains(histories, tokens)
        return gained

    def sequences(self, n_best: int) -> list[list[tuple[tuple[int, ...], float]]]:
        """The best token sequences of each utterance with their scores, best first."""
        with np.errstate(divide="ignore"):
            scores = np.log(self.in_blank + self.in_token) + self.log_scale[:, None]  # (B, N)
        scores += self.fusion_scores
        if self.fusion:
            scores += self.fusion.end_gains(self.history)
        index = np.argsort(-scores, axis=1, kind="stable")[:, :n_best]
        scores = np.take_along_axis(scores, index, axis=1)  # (B, n)
        rows = np.indices(scores.shape)[0]
        tokens = np.empty((len(self.added), *scores.shape), self.added.dtype)  # (T, B, n)
        for time in reversed(range(len(self.added))):
            tokens[time] = self.added[time, rows, index]
            index = self.origins[time, rows, index]
        return [
            [
                (tuple(column[column >= 0].tolist()), float(score))
                for column, score in zip(tokens[:, row].T, scores[row], strict=True)
                if score > -np.inf
            ]
            for row in range(len(scores))
        ]


def _viable_count(threshold: np.ndarray, highest: np.ndarray) -> int:
    """How many of the scores (R, K), descending, reach the threshold (R,) in any row; at least 1."""
    return max(1, int((highest >= threshold[:, None]).sum(axis=1).max()))


def _hash(prefix: np.ndarray, token: np.ndarray) -> np.ndarray:
    """Hash of a prefix extended by one token, uint64."""
    mixed = (prefix ^ (token + 1).astype(np.uint64)) * HASH_MULTIPLIER
    return mixed ^ (mixed >> np.uint64(29))


def _candidates(
    logits: np.ndarray, normaliser: np.ndarray, blank: int, limit: int
) -> tuple[np.ndarray, np.ndarray]:
    """The classes of each frame that may extend a prefix, and their log-probabilities, best first.

    In most frames only a few classes reach the minimum probability: only these are sorted.

    Args:
        logits: (B, T, C).
        normaliser: (B, T), subtracted from the logits gives log-probabilities.
        blank: never a candidate.
        limit: maximum number of candidates in a frame.

    Returns:
        (B, T, K) int and float64, K ≤ ``limit``; frames with fewer candidates are filled with
        log-probability -inf.
    """
    batch, time, size = logits.shape
    floors = (normaliser + np.log(MIN_PROBABILITY)).astype(logits.dtype)
    likely = [np.zeros(0, np.int64)]
    for row, utterance in enumerate(logits):
        least = _least_of_best(utterance, limit + 1, floors[row])  # one more: the blank may be among them
        likely.append(row * time * size + np.flatnonzero(utterance >= least[:, None]))
    likely = np.concatenate(likely)
    likely = likely[likely % size != blank]
    frame = likely // size
    found = logits.reshape(-1).take(likely) - normaliser.reshape(-1).take(frame)
    # Sort by frame, then by score, with one key: the scores of a frame lie within one unit of it.
    order = np.argsort(frame + found / (np.log(MIN_PROBABILITY) - 1))
    counts = np.bincount(frame, minlength=batch * time)
    rank = np.arange(len(frame)) - np.repeat(np.cumsum(counts) - counts, counts)  # within the frame
    width = max(1, min(limit, int(counts.max(initial=0))))
    kept = rank < width
    order, frame, rank = order[kept], frame[kept], rank[kept]
    classes = np.zeros((batch * time, width), np.int64)
    scores = np.full((batch * time, width), -np.inf)
    classes[frame, rank], scores[frame, rank] = likely[order] % size, found[order]
    return classes.reshape(batch, time, width), scores.reshape(batch, time, width)


def _least_of_best(scores: np.ndarray, count: int, floor: np.ndarray) -> np.ndarray:
    """A score that at least ``count`` of each frame's classes reach, or its floor (T,) if that is higher.

    The classes of a frame (T, C) are divided into more than ``count`` groups; the result is the lowest of
    the ``count`` best group maxima.
    """
    while (half := scores.shape[1] // 2) >= 2 * count:
        scores = np.maximum(scores[:, :half], scores[:, half : 2 * half])
    if scores.shape[1] < count:
        return floor
    return np.maximum(floor, np.partition(scores, -count, axis=1)[:, -count])
