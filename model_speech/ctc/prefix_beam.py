"""CTC prefix beam search: finds the n best token sequences for a batch of logits. NumPy only.

The search sums over the alignments of each token sequence (Graves, "Supervised Sequence Labelling with
Recurrent Neural Networks", 2012, section 7.5; Hannun et al., arXiv:1408.2873). It works in the log domain on
a whole batch at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from model_speech.ctc.alignment import align
from model_speech.ctc.greedy import Hypothesis, log_sum_exp
from model_speech.ctc.shallow_fusion import Fusion

# Odd multiplier of the rolling prefix hash (the golden ratio in 64 bits, as in Knuth's multiplicative hash).
HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
# A less probable class extends no prefix. This changed none of 443 decoded recordings.
MIN_PROBABILITY = 4.5e-5


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
    order = np.argsort(-lengths, kind="stable")  # longest first: utterances still running are the first rows
    logits, lengths = logits[order], lengths[order]
    log_probabilities = logits - log_sum_exp(logits)[..., None].astype(np.float32)
    classes, scores = _candidates(log_probabilities, blank, candidates)  # (B, T, K) each
    beams = _Beams.start(len(logits), logits.shape[1], beam, fusion)
    for time in range(int(lengths[:1].sum())):
        running = slice(0, int((lengths > time).sum()))
        beams.advance(
            time, log_probabilities[running, time], classes[running, time], scores[running, time], blank
        )
    decoded = beams.sequences(n_best)
    rows = np.repeat(np.arange(len(logits)), [len(sequences) for sequences in decoded])
    all_tokens = [tokens for sequences in decoded for tokens, _ in sequences]
    frames = iter(align(log_probabilities, lengths, rows, all_tokens, blank))
    hypotheses = [
        [Hypothesis(tokens, score, next(frames)) for tokens, score in sequences] for sequences in decoded
    ]
    return [hypotheses[row] for row in np.argsort(order)]


@dataclass
class _Beams:
    """The N prefixes kept of each of B utterances, and the back pointers to read their tokens.

    A prefix is identified by a 64-bit hash of its tokens, so that one that was dropped and found again is
    the same prefix.
    """

    blank_scores: np.ndarray  # (B, N) float64, log-probability of the alignments that end in the blank
    token_scores: np.ndarray  # (B, N) float64, of those that end in the last token
    last: np.ndarray  # (B, N) int, last token; -1 for the empty prefix
    prefix: np.ndarray  # (B, N) uint64, hash of the prefix
    parent: np.ndarray  # (B, N) uint64, hash of the prefix without its last token
    origins: np.ndarray  # (T, B, N) int16, index of the previous frame's prefix that was kept or extended
    added: np.ndarray  # (T, B, N) int32, the token by which it was extended, or -1
    fusion: Fusion | None
    fusion_scores: np.ndarray  # (B, N) float64, the language model's contribution so far
    history: np.ndarray  # (B, N, H) int, the language model's ids of the last tokens, oldest first

    @staticmethod
    def start(batch: int, time: int, beam: int, fusion: Fusion | None) -> _Beams:
        """The empty prefix alone, with probability 1."""
        blank_scores = np.full((batch, beam), -np.inf)
        blank_scores[:, 0] = 0.0
        unused = np.arange(beam, dtype=np.uint64)[None].repeat(batch, axis=0)
        return _Beams(
            blank_scores=blank_scores,
            token_scores=np.full((batch, beam), -np.inf),
            last=np.full((batch, beam), -1),
            prefix=unused,
            parent=unused + np.uint64(beam),
            origins=np.broadcast_to(np.arange(beam, dtype=np.int16), (time, batch, beam)).copy(),
            added=np.full((time, batch, beam), -1, np.int32),
            fusion=fusion,
            fusion_scores=np.zeros((batch, beam)),
            history=np.zeros((batch, beam, fusion.history if fusion else 0), np.int64),
        )

    def advance(
        self,
        time: int,
        log_probabilities: np.ndarray,
        classes: np.ndarray,
        class_scores: np.ndarray,
        blank: int,
    ) -> None:
        """Process one frame of the first R utterances.

        Args:
            time: index of the frame.
            log_probabilities: (R, C).
            classes: (R, K), those that may extend a prefix, best first.
            class_scores: (R, K), their log-probabilities.
            blank: class of the blank.
        """
        running, beam = len(classes), self.last.shape[1]
        blank_scores, token_scores = self.blank_scores[:running], self.token_scores[:running]  # (R, N)
        last, prefix, parent = self.last[:running], self.prefix[:running], self.parent[:running]
        fusion_scores, history = self.fusion_scores[:running], self.history[:running]
        total = np.logaddexp(blank_scores, token_scores)
        repeat = np.take_along_axis(log_probabilities, np.maximum(last, 0), axis=1)
        repeat = np.where(last >= 0, repeat, -np.inf)

        # An extension may give a prefix that is in the beam already (a child): its mass is added to the
        # child.
        is_child_of = parent[:, :, None] == prefix[:, None, :]  # (R, N child, N mother)
        row, child = np.nonzero(is_child_of.any(axis=2) & (total > -np.inf))
        mother = is_child_of[row, child].argmax(axis=1)
        same = last[row, mother] == last[row, child]
        joining = np.full_like(total, -np.inf)
        joining[row, child] = (
            np.where(same, blank_scores[row, mother], total[row, mother]) + repeat[row, child]
        )
        kept_blank = total + log_probabilities[:, blank : blank + 1]
        kept_token = np.logaddexp(token_scores + repeat, joining)
        kept = np.logaddexp(kept_blank, kept_token)

        # The unchanged prefixes fill the beam: an extension with a lower score than all of them is pruned.
        max_gain = self.fusion.max_gain if self.fusion else 0.0
        threshold = (kept + fusion_scores).min(axis=1)  # (R,); -inf until the beam is full
        width = _viable_count(threshold - (total + fusion_scores).max(axis=1) - max_gain, class_scores)
        classes, class_scores = classes[:, :width], class_scores[:, :width]

        # Extensions (R, N, K): a repetition of the last token is a new token only after a blank.
        repeated = last[:, :, None] == classes[:, None, :]
        extended = np.where(repeated, blank_scores[:, :, None], total[:, :, None]) + class_scores[:, None, :]
        pair, column = np.nonzero(classes[row] == last[row, child][:, None])
        extended[row[pair], mother[pair], column] = -np.inf

        scores = np.concatenate([kept, extended.reshape(running, -1)], axis=1)  # (R, N + N K)
        if self.fusion:
            bound = extended + fusion_scores[:, :, None] + max_gain
            viable = (extended > -np.inf) & (bound >= threshold[:, None, None])
            at, old, new = np.nonzero(viable)
            gained = np.full_like(extended, -np.inf)
            gained[at, old, new] = fusion_scores[at, old] + self.fusion.gains(
                history[at, old], classes[at, new]
            )
            gained = np.concatenate([fusion_scores, gained.reshape(running, -1)], axis=1)
        chosen = _highest(scores + gained if self.fusion else scores, beam)
        is_new = chosen >= beam
        origin = np.where(is_new, (chosen - beam) // width, chosen)
        flat = origin + beam * np.arange(running)[:, None]  # index into the flattened (R, N)
        token = np.take_along_axis(classes, (chosen - beam) % width, axis=1)
        origin_prefix = prefix.take(flat)

        self.token_scores[:running] = np.where(
            is_new, np.take_along_axis(scores, chosen, axis=1), kept_token.take(flat)
        )
        self.blank_scores[:running] = np.where(is_new, -np.inf, kept_blank.take(flat))
        self.parent[:running] = np.where(is_new, origin_prefix, parent.take(flat))
        self.prefix[:running] = np.where(is_new, _hash(origin_prefix, token), origin_prefix)
        self.last[:running] = np.where(is_new, token, last.take(flat))
        self.origins[time, :running] = origin
        self.added[time, :running] = np.where(is_new, token, -1)
        if self.fusion:
            self.fusion_scores[:running] = np.take_along_axis(gained, chosen, axis=1)
            past = history.reshape(-1, history.shape[2])[flat]  # (R, N, H)
            self.history[:running] = self.fusion.extend_histories(past, np.where(is_new, token, -1))

    def sequences(self, n_best: int) -> list[list[tuple[tuple[int, ...], float]]]:
        """The best token sequences of each utterance with their scores, best first."""
        scores = np.logaddexp(self.blank_scores, self.token_scores) + self.fusion_scores  # (B, N)
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


def _viable_count(threshold: np.ndarray, class_scores: np.ndarray) -> int:
    """How many of the classes (R, K), best first, reach the threshold (R,) in any row; at least 1."""
    return max(1, int((class_scores >= threshold[:, None]).sum(axis=1).max()))


def _highest(scores: np.ndarray, count: int) -> np.ndarray:
    """Indices of the ``count`` highest values of each row (R, M), highest first: (R, count)."""
    unsorted = np.argpartition(scores, -count, axis=1)[:, -count:]
    order = np.argsort(-np.take_along_axis(scores, unsorted, axis=1), axis=1, kind="stable")
    return np.take_along_axis(unsorted, order, axis=1)


def _hash(prefix: np.ndarray, token: np.ndarray) -> np.ndarray:
    """Hash of a prefix extended by one token, uint64."""
    mixed = (prefix ^ (token + 1).astype(np.uint64)) * HASH_MULTIPLIER
    return mixed ^ (mixed >> np.uint64(29))


def _candidates(log_probabilities: np.ndarray, blank: int, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """The classes of each frame that may extend a prefix, and their log-probabilities, best first.

    In most frames only a few classes reach the minimum probability: only these are sorted.

    Args:
        log_probabilities: (B, T, C).
        blank: never a candidate.
        limit: maximum number of candidates in a frame.

    Returns:
        (B, T, K) int and float, K ≤ ``limit``; frames with fewer candidates are filled with log-probability
        -inf.
    """
    batch, time, size = log_probabilities.shape
    flat = log_probabilities.reshape(-1)
    likely = np.flatnonzero(flat > np.log(MIN_PROBABILITY))
    likely = likely[likely % size != blank]
    frame = likely // size
    # Sort by frame, then by score, with one key: the scores of a frame lie within one unit of it.
    likely = likely[np.argsort(frame + flat[likely] / np.log(MIN_PROBABILITY))]
    counts = np.bincount(frame, minlength=batch * time)
    rank = np.arange(len(frame)) - np.repeat(np.cumsum(counts) - counts, counts)  # within the frame
    width = max(1, min(limit, int(counts.max(initial=0))))
    kept = rank < width
    likely, frame, rank = likely[kept], frame[kept], rank[kept]
    classes = np.zeros((batch * time, width), np.int64)
    scores = np.full((batch * time, width), -np.inf, flat.dtype)
    classes[frame, rank], scores[frame, rank] = likely % size, flat[likely]
    return classes.reshape(batch, time, width), scores.reshape(batch, time, width)
