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
    logits: np.ndarray, pinyin: Sequence[str], vocabulary: Vocabulary
) -> tuple[np.ndarray, np.ndarray] | None:
    """Locate the syllables of a known text in an utterance by forced alignment.

    Args:
        logits: (T, C) float, valid frames only.
        pinyin: the syllables of the utterance.
        vocabulary: vocabulary of the model.

    Returns:
        The frame of each syllable and its log-probability there, both (syllables,); None if the text is
        empty, has a syllable that the model does not know, or more syllables than fit into the frames.
    """
    if not pinyin or not all(syllable in vocabulary for syllable in pinyin):
        return None
    log_probabilities, tokens = log_softmax(logits), vocabulary.encode(pinyin).tolist()
    lengths, rows = np.array([len(logits)]), np.zeros(1, int)
    try:
        (peaks,) = align(log_probabilities[None], lengths, rows, [tokens], vocabulary.blank_index)
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
    frames = np.arange(log_probabilities.shape[1])
    emitted = log_probabilities[rows[:, None, None], frames[None, :, None], states[:, None, :]]  # (N, T, S)
    if normaliser is not None:
        emitted = emitted - normaliser[rows][:, :, None]
    final = np.array([2 * len(tokens) for tokens in sequences])
    path = _best_path(emitted, states, lengths[rows], final)
    alignments = []
    for n, tokens in enumerate(sequences):
        valid = np.arange(lengths[rows[n]])
        scores = emitted[n, valid, path[n, valid]]
        alignments.append(Alignment(_peaks(emitted[n], path[n], len(tokens)), scores))
    return alignments


def _peaks(emitted: np.ndarray, path: np.ndarray, tokens: int) -> tuple[int, ...]:
    """The most probable frame of each token, among those that the path (T,) assigns to it."""
    runs = [np.flatnonzero(path == state) for state in range(1, 2 * tokens, 2)]
    return tuple(int(run[emitted[run, 2 * n + 1].argmax()]) for n, run in enumerate(runs))


def _best_path(emitted: np.ndarray, states: np.ndarray, lengths: np.ndarray, final: np.ndarray) -> np.ndarray:
    """State of each frame on the most probable path.

    Args:
        emitted: (N, T, S) log-probability of each state's class.
        states: (N, S) classes; the path may skip a blank between two different tokens.
        lengths: (N,) number of valid frames.
        final: (N,) index of the last blank; the path ends there or in the state before.

    Returns:
        (N, T) int; -1 in padding frames.
    """
    count, time, size = emitted.shape
    # A blank may be skipped between two different tokens, and before the first one.
    skipping = np.full(states.shape, -np.inf)
    skipping[:, 1:2] = 0.0
    skipping[:, 2:][states[:, 2:] != states[:, :-2]] = 0.0
    # Before the first and after each frame, with two extra columns before the first state.
    scores = np.full((time + 1, count, size + 2), -np.inf)
    scores[0, :, 1] = 0.0
    for before, after, frame in zip(scores, scores[1:], emitted.swapaxes(0, 1), strict=False):
        best = np.maximum(before[:, 2:], before[:, 1:-1])
        np.maximum(best, before[:, :-2] + skipping, out=best)
        np.add(best, frame, out=after[:, 2:])
    path = np.full((count, time), -1)
    for n, length in enumerate(lengths):
        own = scores[: length + 1, n]
        if np.isneginf(own[-1, final[n] + 1 : final[n] + 3]).all():
            tokens = final[n] // 2
            raise ValueError(f"sequence {n} of {tokens} tokens can't be aligned with {length} frames")
        path[n, :length] = _trace(own, skipping[n], final[n])
    return path


def _trace(scores: np.ndarray, skipping: np.ndarray, final: int) -> list[int]:
    """Follow the best predecessors of one sequence from its end; see `_best_path`.

    Args:
        scores: (T + 1, S + 2).
        skipping: (S,) 0 where two states may be passed at once, else -inf.
        final: index of the last blank.
    """
    blank, token = scores[-1, final + 2], scores[-1, final + 1]
    state = int(final) if blank >= token else int(final) - 1
    path = []
    for before in scores[-2::-1]:
        path.append(state)
        skip, move, stay = before[state] + skipping[state], before[state + 1], before[state + 2]
        if skip > move and skip > stay:
            state -= 2
        elif move > stay:
            state -= 1
    return path[::-1]
