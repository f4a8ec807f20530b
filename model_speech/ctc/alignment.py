"""Forced alignment by the Viterbi algorithm: finds the frame of each token of known sequences. NumPy only."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from utils.arrays import log_softmax
from utils.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class Alignment:
    """The best CTC path of a sequence.

    Attributes:
        frames: the frame in which each token peaks, strictly ascending.
        scores: (T,) log-probability of the path's class in each valid frame.
    """

    frames: tuple[int, ...]
    scores: np.ndarray


def align_text(
    logits: np.ndarray,
    pinyin: Sequence[str],
    vocabulary: Vocabulary,
    readings: Sequence[Sequence[str]] = (),
) -> tuple[np.ndarray, np.ndarray] | None:
    """Locate the syllables of a known text in an utterance by forced alignment.

    Args:
        logits: (T, C) float, valid frames only.
        pinyin: the syllables of the utterance.
        vocabulary: vocabulary of the model.
        readings: for each syllable the pronunciations that count as it; the probability is then that of any
            of them. (): only the syllables themselves.

    Returns:
        The frame of each syllable and its log-probability there, both (syllables,); None if the text is
        empty, has a syllable that the model does not know, or more syllables than fit into the frames.
    """
    if not pinyin or not all(syllable in vocabulary for syllable in pinyin):
        return None
    log_probabilities = log_softmax(logits)
    known = [tuple(filter(vocabulary.__contains__, each)) for each in readings or zip(pinyin)]
    columns = {each: column for column, each in enumerate(dict.fromkeys(known), start=1)}
    of_readings = (log_probabilities[:, vocabulary.encode(each)] for each in columns)  # (T, pronunciations)
    # (T, 1 + different syllables), the blank first
    log_probabilities = np.column_stack(
        [
            log_probabilities[:, vocabulary.blank_index],
            *(np.logaddexp.reduce(each, axis=1) for each in of_readings),
        ]
    )
    tokens = [columns[each] for each in known]
    lengths, rows = np.array([len(logits)]), np.zeros(1, int)
    try:
        (peaks,) = align(log_probabilities[None], lengths, rows, [tokens], blank=0)
    except ValueError:
        return None
    frames = np.array(peaks)
    return frames, log_probabilities[frames, tokens]


def align(
    log_probabilities: np.ndarray,
    lengths: np.ndarray,
    rows: np.ndarray,
    sequences: Sequence[Sequence[int]],
    blank: int,
    normaliser: np.ndarray | None = None,
) -> list[tuple[int, ...]]:
    """The frame in which each token of known sequences peaks; arguments as of :func:`best_alignments`."""
    found = best_alignments(log_probabilities, lengths, rows, sequences, blank, normaliser)
    return [alignment.frames for alignment in found]


def best_alignments(
    log_probabilities: np.ndarray,
    lengths: np.ndarray,
    rows: np.ndarray,
    sequences: Sequence[Sequence[int]],
    blank: int,
    normaliser: np.ndarray | None = None,
) -> list[Alignment]:
    """Locate the tokens of known sequences in their best CTC alignments (Viterbi algorithm).

    Args:
        log_probabilities: (B, T, C) float.
        lengths: (B,) int, number of valid frames.
        rows: (N,) int, index of the utterance of each sequence; one utterance may have several sequences.
        sequences: N token sequences.
        blank: class of the blank.
        normaliser: (B, T), log-sum-exp of each frame if ``log_probabilities`` are logits; it is subtracted
            where they are used.

    Raises:
        ValueError: a sequence needs more frames than its utterance has; the message names its index.
    """
    if not sequences:
        return []
    rows, lengths = np.asarray(rows), np.asarray(lengths)
    longest = max(len(tokens) for tokens in sequences)
    states = np.full((len(sequences), 2 * longest + 1), blank)  # blank, token 1, blank, …, blank
    for row, tokens in zip(states, sequences, strict=True):
        row[1 : 2 * len(tokens) : 2] = tokens
    final = np.array([2 * len(tokens) for tokens in sequences])
    path = _best_path(log_probabilities, rows, states, lengths[rows], final)
    alignments = []
    for n, row in enumerate(rows):
        own, valid = path[n, : lengths[row]], np.arange(lengths[row])
        scores = log_probabilities[row, valid, states[n].take(own)]
        if normaliser is not None:
            scores = scores - normaliser[row, valid]
        alignments.append(Alignment(_peaks(scores, own, len(sequences[n])), scores))
    return alignments


def _peaks(scores: np.ndarray, path: np.ndarray, tokens: int) -> tuple[int, ...]:
    """The most probable frame of each token among those of the path (T,), which never falls."""
    odd = np.arange(1, 2 * tokens, 2)
    runs = zip(np.searchsorted(path, odd), np.searchsorted(path, odd, side="right"), strict=True)
    return tuple(int(start + scores[start:end].argmax()) for start, end in runs)


def _best_path(
    log_probabilities: np.ndarray,
    rows: np.ndarray,
    states: np.ndarray,
    lengths: np.ndarray,
    final: np.ndarray,
) -> np.ndarray:
    """State of each frame on the most probable path; the memory is a byte for each frame and state.

    Args:
        log_probabilities: (B, T, C); a constant that is added to a frame has no influence.
        rows: (N,) index into B.
        states: (N, S) classes; the path may skip a blank between two different tokens.
        lengths: (N,) number of valid frames.
        final: (N,) index of the last blank; the path ends there or in the state before.

    Returns:
        (N, T) int; -1 in padding frames.
    """
    (count, size), time = states.shape, log_probabilities.shape[1]
    # A blank may be skipped between two different tokens, and before the first one.
    skipping = np.full(states.shape, -np.inf)
    skipping[:, 1:2] = 0.0
    skipping[:, 2:][states[:, 2:] != states[:, :-2]] = 0.0
    scores = np.full((count, size + 2), -np.inf)  # with two columns before the first state
    scores[:, 1] = 0.0
    steps = np.empty((time, count, size), np.int8)  # states that the path advances into a frame
    ends = np.full((count, 2), -np.inf)  # scores of the last token and the last blank in the last frame
    each = np.arange(count)
    for frame in range(time):
        ending = lengths == frame
        ends[ending] = scores[each[ending, None], final[ending, None] + (1, 2)]
        stay, move, skip = scores[:, 2:], scores[:, 1:-1], scores[:, :-2] + skipping
        best = np.maximum(stay, move)
        skips = skip > best
        steps[frame] = np.where(skips, 2, move > stay)
        scores[:, 2:] = np.where(skips, skip, best) + log_probabilities[rows[:, None], frame, states]
        scores[:, 1] = -np.inf
    ending = lengths == time
    ends[ending] = scores[each[ending, None], final[ending, None] + (1, 2)]
    path = np.full((count, time), -1)
    for n, length in enumerate(lengths):
        if np.isneginf(ends[n]).all():
            tokens = final[n] // 2
            raise ValueError(f"sequence {n} of {tokens} tokens can't be aligned with {length} frames")
        state = final[n] - (ends[n, 0] > ends[n, 1])
        for frame in range(length - 1, -1, -1):
            path[n, frame] = state
            state -= steps[frame, n, state]
    return path
