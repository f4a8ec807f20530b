"""Computes the alternatives of each decoded token with their posteriors: a confusion network. NumPy only.

For each token of the sequence y this computes the probability of y with that token replaced or deleted, and
for each gap that of y with a token inserted there. These are exact sums over all alignments: the forward
variables of the tokens before and the backward variables of those after the position, with one free token
between them. Several changes at once are treated as independent.
"""

import numpy as np

from model_speech.ctc.forward_backward import backward, forward
from utils.arrays import log_softmax, log_sum_exp
from utils.hypotheses.recognition import NOTHING, ConfusionNetwork, Hypothesis, Slot
from utils.vocabulary import SPACE, Vocabulary

MIN_FRAME_PROBABILITY = 1e-3  # a class that is less probable in every frame is no alternative
MIN_POSTERIOR, MOST_ALTERNATIVES = 1e-3, 16  # of a slot
_NO_WEIGHT = 1e-20  # scaled probabilities below it are not followed any further


def confusion_network(
    logits: np.ndarray, best: Hypothesis, vocabulary: Vocabulary, min_posterior: float = MIN_POSTERIOR
) -> ConfusionNetwork:
    """The alternatives of a decoded utterance, as syllables: of each one, and of each gap that has any.

    Args:
        logits: (T, C) float, valid frames only, T ≥ 1.
        best: y, a hypothesis of greedy decoding or of a beam search.
        vocabulary: the model's classes. The space, if it has one, stands for no sound: its probability is
            added to the blank's.
        min_posterior: less probable alternatives are left out.

    Returns:
        slots in time order: gap, syllable, gap, syllable … gap; gaps without alternatives are left out.
    """
    blank, silent = vocabulary.blank_index, [vocabulary.index(SPACE)] if SPACE in vocabulary else []
    found = zip(best.tokens, best.frames, strict=True)
    spoken = [(token, frame) for token, frame in found if token not in silent]
    tokens, frames = zip(*spoken, strict=True) if spoken else ((), ())
    # The frames' normalisers cancel in the posteriors, so those of single precision are exact enough.
    log_probs = logits - log_sum_exp(logits[None])[0][:, None]
    likely = (log_probs > np.log(MIN_FRAME_PROBABILITY)).any(axis=0)
    likely[[blank, *silent]] = False
    likely[list(tokens)] = True
    classes = np.flatnonzero(likely)
    # Only the likely classes: the blank, to which the silent ones are added, is class 0 now.
    selected = log_probs[:, [blank, *classes]]  # (T, 1 + K)
    for each in silent:
        selected[:, 0] = np.logaddexp(selected[:, 0], log_probs[:, each])
    known = np.searchsorted(classes, np.asarray(tokens, int)) + 1
    logs = log_softmax(scores_of_changes(selected, known, np.arange(1, len(classes) + 1), 0))
    peaks = np.array([-1, *frames, len(logits)])
    slot_frames = np.empty(len(logs), int)
    slot_frames[::2], slot_frames[1::2] = (peaks[:-1] + peaks[1:]) // 2, peaks[1:-1]
    probable = np.exp(logs) >= min_posterior
    probable[np.arange(len(logs)), logs.argmax(axis=1)] = True
    row, column = probable.nonzero()
    value = logs[row, column]
    best_first = np.lexsort([-value, row])
    alternatives = [*(vocabulary.tokens[index] for index in classes.tolist()), NOTHING]
    named = [alternatives[index] for index in column.take(best_first).tolist()]
    values, ends = value.take(best_first).tolist(), np.cumsum(probable.sum(axis=1)).tolist()
    slots = []
    for start, end, frame in zip([0, *ends], ends, slot_frames.tolist(), strict=False):
        chosen = slice(start, min(end, start + MOST_ALTERNATIVES))
        slots.append(Slot(tuple(named[chosen]), tuple(values[chosen]), frame))
    return ConfusionNetwork(tuple(slot for slot in slots if slot.syllables != (NOTHING,)))


def scores_of_changes(
    log_probs: np.ndarray, tokens: np.ndarray, classes: np.ndarray, blank: int
) -> np.ndarray:
    """Log-probabilities, over all alignments, of the sequences that differ from y by at most one token.

    Args:
        log_probs: (T, C) float64, log-probabilities of each frame.
        tokens: y, (L,) int, without the blank.
        classes: (K,) int, replacements and insertions.
        blank: class of the blank.

    Returns:
        (2 L + 1, K + 1): a row for each gap and token in turn. Columns: y with each class inserted in the
        gap or instead of the token; the last one: y itself, or without the token.
    """
    log_alpha_blank, log_alpha_token = log_alpha = forward(log_probs, tokens, blank)
    log_beta = backward(log_probs, tokens, blank)
    scores = np.empty((2 * len(tokens) + 1, len(classes) + 1))
    scores[:, :-1] = _with_free_token(log_probs, tokens, classes, blank, log_alpha, log_beta)
    scores[::2, -1] = np.logaddexp(log_alpha_blank[-1, -1], log_alpha_token[-1, -1])
    scores[1::2, -1] = _deleted(tokens, log_alpha, log_beta)
    return scores


def _with_free_token(
    log_probs: np.ndarray,
    tokens: np.ndarray,
    classes: np.ndarray,
    blank: int,
    log_alpha: tuple[np.ndarray, np.ndarray],
    log_beta: np.ndarray,
) -> np.ndarray:
    """Log-probability of prefix + class + suffix for S = 2 L + 1 pairs of prefix and suffix: (S, K).

    Even pairs have all tokens (the class is inserted), odd ones leave out the token between (replaced).

    The recursion uses probabilities, because logarithms take ten times as long. They are scaled in each
    frame by the sum over all prefixes; those that underflow have no weight. The pairs are in the order of
    time, so that those with any weight in a frame are neighbours.
    """
    prefixes = np.arange(2 * len(tokens) + 1) // 2
    suffixes = np.append(prefixes[1:], len(tokens))
    scale = np.logaddexp.reduce(np.concatenate(log_alpha, axis=1), axis=1)  # (T + 1,)
    highest = (scale[:, None] + log_beta).max()
    blanks, ends = (np.exp(each - scale[:, None]).take(prefixes, axis=1) for each in log_alpha)  # (T + 1, S)
    entering = blanks + ends
    beta = np.exp(log_beta + scale[:, None] - highest).take(suffixes, axis=1)  # (T + 1, S)
    scaled = (scale[:-1] - scale[1:])[:, None]
    class_steps = np.exp(log_probs.take(classes, axis=1) + scaled)  # (T, K)
    blank_steps = np.exp(log_probs[:, blank, None] + scaled)[:, 0]  # (T,)
    # Where the class equals the token before or after it, a blank must separate the two.
    padded = np.concatenate([[-1], tokens, [-1]])
    # Such cells (pair, class) by their flat index: a look-up by two indices takes several times as long.
    left, right = (np.flatnonzero(padded[side][:, None] == classes) for side in (prefixes, suffixes + 1))
    blanks_left, beta_right = (
        weights.take(cells // len(classes), axis=1) for weights, cells in ((blanks, left), (beta, right))
    )
    in_class = np.zeros((len(prefixes), len(classes)))
    in_blank, total, ending = np.zeros((3, *in_class.shape))  # in a blank after the class; complete
    for t, pairs in enumerate(_relevant(entering, beta)):
        # The suffix begins in this frame.
        separated = in_blank.take(right)
        in_blank[pairs] += in_class[pairs]
        np.multiply(in_blank[pairs], beta[t, pairs, None], out=ending[pairs])
        ending.ravel()[right] = separated * beta_right[t]
        total[pairs] += ending[pairs]
        if t == len(class_steps):
            break
        in_blank[pairs] *= blank_steps[t]
        separated = in_class.take(left) + blanks_left[t]
        in_class[pairs] += entering[t, pairs, None]
        in_class.ravel()[left] = separated
        in_class[pairs] *= class_steps[t]
    with np.errstate(divide="ignore"):
        return np.log(total) + highest


def _relevant(entering: np.ndarray, leaving: np.ndarray) -> list[slice]:
    """In each frame the pairs that have begun and can still end: weights (T + 1, S) → T + 1 slices of S."""
    frames = np.arange(len(entering))
    begins = np.minimum.accumulate((entering > _NO_WEIGHT).argmax(axis=0)[::-1])[::-1]
    ends = np.maximum.accumulate(frames[-1] - (leaving[::-1] > _NO_WEIGHT).argmax(axis=0))
    first, last = np.searchsorted(ends, frames), np.searchsorted(begins, frames, side="right")
    return [slice(*pair) for pair in zip(first.tolist(), last.tolist(), strict=True)]


def _deleted(
    tokens: np.ndarray, log_alpha: tuple[np.ndarray, np.ndarray], log_beta: np.ndarray
) -> np.ndarray:
    """Log-probability of the sequence without each one of its tokens: (L,)."""
    log_alpha_blank, log_alpha_token = log_alpha
    prefixes, suffixes = np.arange(len(tokens)), np.arange(1, len(tokens) + 1)
    padded = np.concatenate([[-1], tokens, [-2]])
    equal = padded[prefixes] == padded[suffixes + 1]  # equal tokens on both sides: a blank must separate them
    before = np.where(equal, -np.inf, log_alpha_token[:, prefixes])  # (T + 1, L)
    before = np.logaddexp(log_alpha_blank[:, prefixes], before)
    return np.logaddexp.reduce(before + log_beta[:, suffixes], axis=0)
