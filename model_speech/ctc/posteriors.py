"""Computes the alternatives of each decoded token with their posteriors: a confusion network. NumPy only.

For each token of the sequence y this computes the probability of y with that token replaced or deleted, and
for each gap that of y with a token inserted there. These are exact sums over all alignments: the forward
variables of the tokens before and the backward variables of those after the position, with one free token
between them. Several changes at once are treated as independent.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model_speech.ctc.forward_backward import backward, forward
from model_speech.ctc.greedy import Hypothesis
from utils.hypotheses.confusion_network import NOTHING, ConfusionNetwork, Slot
from utils.softmax import log_softmax
from utils.vocabulary import SPACE, Vocabulary

MIN_FRAME_PROBABILITY = 1e-3  # a class that is less probable in every frame is no alternative
NONE = -1
"""Stands for no token."""


@dataclass(frozen=True)
class TokenSlot:
    """A token of an utterance or a gap between two, with its alternatives.

    Attributes:
        tokens: alternatives, the most probable first; :data:`NONE` for no token.
        log_posteriors: natural logarithms; the probabilities sum to 1 before alternatives are left out.
        frame: output frame in which the token is, or would be.
    """

    tokens: tuple[int, ...]
    log_posteriors: tuple[float, ...]
    frame: int


def token_slots(
    logits: np.ndarray,
    tokens: Sequence[int],
    frames: Sequence[int],
    blank: int,
    silent: Sequence[int] = (),
    min_posterior: float = 1e-3,
    max_alternatives: int = 8,
) -> list[TokenSlot]:
    """Alternatives of each token, and of each gap that has any.

    Args:
        logits: (T, C) float, valid frames only, T ≥ 1.
        tokens: y, classes without blank and silent ones.
        frames: output frame in which each token peaks.
        blank: class of the blank.
        silent: other classes that stand for no sound (the space); their probability is added to the blank's.
        min_posterior: less probable alternatives are left out.
        max_alternatives: largest number of alternatives of a slot.

    Returns:
        slots in time order: gap, token, gap, token … gap; gaps without alternatives are left out.
    """
    log_probs = log_softmax(logits)
    log_probs[:, blank] = np.logaddexp.reduce(log_probs[:, [blank, *silent]], axis=1)
    tokens = np.asarray(tokens, int)
    likely = (log_probs > np.log(MIN_FRAME_PROBABILITY)).any(axis=0)
    likely[[blank, *silent]] = False
    likely[tokens] = True
    classes = np.flatnonzero(likely)
    scores = neighbourhood(log_probs, tokens, classes, blank)
    limits = min_posterior, max_alternatives
    slots = []
    peaks = [-1, *frames, len(logits)]
    for index in range(len(tokens) + 1):
        middle = (peaks[index] + peaks[index + 1]) // 2
        slots.append(_slot(classes, scores.inserted[index], scores.whole, middle, *limits))
        if index < len(tokens):
            replaced, deleted = scores.replaced[index], scores.deleted[index]
            slots.append(_slot(classes, replaced, deleted, frames[index], *limits))
    return [slot for slot in slots if slot.tokens != (NONE,)]


def confusion_network(logits: np.ndarray, best: Hypothesis, vocabulary: Vocabulary) -> ConfusionNetwork:
    """The alternatives of a decoded utterance, as syllables.

    Args:
        logits: (T, C) float, valid frames only.
        best: hypothesis of greedy decoding or of a beam search.
        vocabulary: the model's classes; the space stands for no sound.
    """
    space = vocabulary.index(SPACE)
    spoken = [(token, frame) for token, frame in zip(best.tokens, best.frames, strict=True) if token != space]
    tokens, frames = zip(*spoken, strict=True) if spoken else ((), ())
    slots = token_slots(logits, tokens, frames, vocabulary.blank_index, (space,))
    return ConfusionNetwork(
        tuple(
            Slot(
                tuple(NOTHING if token == NONE else vocabulary.tokens[token] for token in slot.tokens),
                slot.log_posteriors,
                slot.frame,
            )
            for slot in slots
        )
    )


@dataclass(frozen=True)
class Neighbourhood:
    """Log-probabilities of y and of all sequences that differ from it by one token.

    Attributes:
        whole: log-probability of y, which has L tokens.
        deleted: (L,), of y without each token.
        replaced: (L, K), with each token replaced by each class (by itself: ``whole``).
        inserted: (L + 1, K), with a class inserted before each token, and at the end.
    """

    whole: float
    deleted: np.ndarray
    replaced: np.ndarray
    inserted: np.ndarray


def neighbourhood(
    log_probs: np.ndarray, tokens: np.ndarray, classes: np.ndarray, blank: int
) -> Neighbourhood:
    """Sum over the alignments of every sequence that differs from ``tokens`` by at most one token.

    Args:
        log_probs: (T, C) float64, log-probabilities of each frame.
        tokens: (L,) int, without the blank.
        classes: (K,) int, replacements and insertions.
        blank: class of the blank.
    """
    length = len(tokens)
    log_alpha_blank, log_alpha_token = log_alpha = forward(log_probs, tokens, blank)
    log_beta = backward(log_probs, tokens, blank)
    # S pairs of a prefix of i tokens and a suffix from token j on. Replaced: (i, i + 1), inserted: (i, i).
    prefixes = np.concatenate([np.arange(length), np.arange(length + 1)])
    suffixes = np.concatenate([np.arange(1, length + 1), np.arange(length + 1)])
    whole = float(np.logaddexp(log_alpha_blank[-1, -1], log_alpha_token[-1, -1]))
    free = _with_free_token(log_probs, tokens, classes, blank, log_alpha, log_beta, prefixes, suffixes)
    return Neighbourhood(whole, _deleted(tokens, log_alpha, log_beta), free[:length], free[length:])


def _with_free_token(
    log_probs: np.ndarray,
    tokens: np.ndarray,
    classes: np.ndarray,
    blank: int,
    log_alpha: tuple[np.ndarray, np.ndarray],
    log_beta: np.ndarray,
    prefixes: np.ndarray,
    suffixes: np.ndarray,
) -> np.ndarray:
    """Log-probability of prefix + class + suffix for S pairs of prefix and suffix: (S, K).

    The recursion has probabilities, not logarithms, which take ten times as long. They are scaled in each
    frame by the sum over all prefixes, and what is smaller than the smallest number has no weight.
    """
    scale = np.logaddexp.reduce(np.concatenate(log_alpha, axis=1), axis=1)  # (T + 1,)
    highest = (scale[:, None] + log_beta).max()
    alpha_blank, alpha_token = (np.exp(each - scale[:, None]) for each in log_alpha)  # (T + 1, L + 1)
    beta = np.exp(log_beta + scale[:, None] - highest)  # (T + 1, L + 1)
    scaled = (scale[:-1] - scale[1:])[:, None]
    class_steps = np.exp(log_probs.take(classes, axis=1) + scaled)  # (T, K)
    blank_steps = np.exp(log_probs[:, blank, None] + scaled)[:, 0]  # (T,)
    padded = np.concatenate([[NONE], tokens, [NONE]])
    repeats_left = padded[prefixes][:, None] == classes  # (S, K): the class is the prefix's last token
    repeats_right = padded[suffixes + 1][:, None] == classes
    shape = (len(prefixes), len(classes))
    may_repeat_left, may_leave = ~repeats_left, ~repeats_right
    in_class, in_blank, total = np.zeros((3, *shape))  # in the class; in a blank after it; complete
    for t, (class_step, blank_step) in enumerate(zip(class_steps, blank_steps.tolist(), strict=True)):
        # The suffix begins in this frame.
        total += (in_blank + in_class * may_leave) * beta[t, suffixes][:, None]
        entering = alpha_token[t, prefixes][:, None] * may_repeat_left + alpha_blank[t, prefixes][:, None]
        in_blank += in_class
        in_blank *= blank_step
        in_class += entering
        in_class *= class_step
    total += (in_class + in_blank) * beta[-1, suffixes][:, None]
    with np.errstate(divide="ignore"):
        return np.log(total) + highest


def _deleted(
    tokens: np.ndarray, log_alpha: tuple[np.ndarray, np.ndarray], log_beta: np.ndarray
) -> np.ndarray:
    """Log-probability of the tokens without one, for each of them: (L,)."""
    log_alpha_blank, log_alpha_token = log_alpha
    prefixes, suffixes = np.arange(len(tokens)), np.arange(1, len(tokens) + 1)
    padded = np.concatenate([[NONE], tokens, [NONE - 1]])
    equal = padded[prefixes] == padded[suffixes + 1]  # equal tokens on both sides: a blank must separate them
    before = np.where(equal, -np.inf, log_alpha_token[:, prefixes])  # (T + 1, L)
    before = np.logaddexp(log_alpha_blank[:, prefixes], before)
    return np.logaddexp.reduce(before + log_beta[:, suffixes], axis=0)


def _slot(
    classes: np.ndarray,
    with_class: np.ndarray,
    with_none: float,
    frame: int,
    min_posterior: float,
    max_alternatives: int,
) -> TokenSlot:
    logs = np.append(with_class, with_none)
    logs = logs - np.logaddexp.reduce(logs)
    order = np.argsort(-logs, kind="stable")[:max_alternatives]
    order = order[(np.exp(logs[order]) >= min_posterior) | (np.arange(len(order)) == 0)]
    tokens = np.append(classes, NONE)[order]
    return TokenSlot(tuple(tokens.tolist()), tuple(logs[order].tolist()), int(frame))
