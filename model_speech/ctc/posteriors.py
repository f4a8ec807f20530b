"""Logits of one utterance and its best token sequence in; what else may have been said, token by token, out.

For each token of the sequence y: how probable is y with this token exchanged for another one, or without it;
for each gap: with one token more there. These are exact: sums over all alignments, from the forward variables
of what comes before and the backward variables of what comes after (Graves et al., "Connectionist Temporal
Classification", ICML 2006, section 4.1), with one token free between them. Two changes at once are taken as
independent. NumPy only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model_speech.ctc.prefix_beam import Hypothesis
from utils.hypotheses.confusion_network import NOTHING, ConfusionNetwork, Slot
from utils.softmax import log_softmax
from utils.vocabulary import SPACE, Vocabulary

LEAST_IN_FRAME = 1e-3  # a class that no frame holds for more probable is no alternative
NONE = -1
"""Stands for no token."""


@dataclass(frozen=True)
class TokenSlot:
    """A place in an utterance.

    Attributes:
        tokens: alternatives, the most probable first; :data:`NONE` for no token.
        log_posteriors: of each, natural logarithm; their probabilities sum to 1 before any were left out.
        frame: where the token is, or might be.
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
    least: float = 1e-3,
    most: int = 8,
) -> list[TokenSlot]:
    """Alternatives to each token, and to nothing in each gap where there are any.

    Args:
        logits: (T, C) float, of the frames that count, T ≥ 1.
        tokens: y, classes without blank and silent ones.
        frames: in which each of them peaks.
        blank: class of the blank.
        silent: further classes that mean nothing said (the space); their probability goes to the blank.
        least: alternatives with a smaller posterior are left out.
        most: alternatives of a slot.

    Returns:
        slots in time order: gap, token, gap, token … gap; gaps without alternatives are left out.
    """
    log_probs = log_softmax(logits)
    log_probs[:, blank] = np.logaddexp.reduce(log_probs[:, [blank, *silent]], axis=1)
    tokens = np.asarray(tokens, int)
    likely = (log_probs > np.log(LEAST_IN_FRAME)).any(axis=0)
    likely[[blank, *silent]] = False
    likely[tokens] = True
    classes = np.flatnonzero(likely)
    totals = neighbourhood(log_probs, tokens, classes, blank)
    slots = []
    peaks = [-1, *frames, len(logits)]
    for place in range(len(tokens) + 1):
        gap = (peaks[place] + peaks[place + 1]) // 2
        slots.append(_slot(classes, totals.inserted[place], totals.whole, gap, least, most))
        if place < len(tokens):
            deleted = totals.deleted[place]
            slots.append(_slot(classes, totals.exchanged[place], deleted, frames[place], least, most))
    return [slot for slot in slots if slot.tokens != (NONE,)]


def confusion_network(logits: np.ndarray, best: Hypothesis, vocabulary: Vocabulary) -> ConfusionNetwork:
    """What may have been said, from logits (T, C) and the best reading of them.

    Args:
        logits: (T, C) float, of the frames that count.
        best: from greedy decoding or a beam search.
        vocabulary: the model's classes; the space means nothing said.
    """
    space = vocabulary.index(SPACE)
    heard = [(token, frame) for token, frame in zip(best.tokens, best.frames, strict=True) if token != space]
    tokens, frames = zip(*heard, strict=True) if heard else ((), ())
    found = token_slots(logits, tokens, frames, vocabulary.blank_index, (space,))
    return ConfusionNetwork(
        tuple(
            Slot(
                tuple(NOTHING if token == NONE else vocabulary.tokens[token] for token in slot.tokens),
                slot.log_posteriors,
                slot.frame,
            )
            for slot in found
        )
    )


@dataclass(frozen=True)
class Neighbourhood:
    """Log-probabilities of y and of all sequences that differ from it by one token.

    Attributes:
        whole: of y, of L tokens.
        deleted: (L,), of y without each token.
        exchanged: (L, K), with each token exchanged for each class (itself: ``whole``).
        inserted: (L + 1, K), with a class put before each token, and at the end.
    """

    whole: float
    deleted: np.ndarray
    exchanged: np.ndarray
    inserted: np.ndarray


def neighbourhood(
    log_probs: np.ndarray, tokens: np.ndarray, classes: np.ndarray, blank: int
) -> Neighbourhood:
    """Sum over the alignments of every sequence that differs from ``tokens`` by at most one.

    Args:
        log_probs: (T, C) float64, log-probabilities of each frame.
        tokens: (L,) int, without the blank.
        classes: (K,) int, what may be put in.
        blank: class of the blank.
    """
    length = len(tokens)
    quiet, ended = _forward(log_probs, tokens, blank)  # (T + 1, L + 1) each
    entering = _backward(log_probs, tokens, blank)  # (T + 1, L + 1)
    # Prefix i, one free token, suffix j; exchanged: (i, i + 1), inserted: (i, i).
    before = np.concatenate([np.arange(length), np.arange(length + 1)])  # (S,)
    after = np.concatenate([np.arange(1, length + 1), np.arange(length + 1)])
    free = _with_free_token(log_probs, tokens, classes, blank, (quiet, ended, entering), before, after)
    joined = _without(tokens, quiet, ended, entering)  # (L,)
    whole = float(np.logaddexp(quiet[-1, -1], ended[-1, -1]))
    return Neighbourhood(whole, joined, free[:length], free[length:])


def _forward(log_probs: np.ndarray, tokens: np.ndarray, blank: int) -> tuple[np.ndarray, np.ndarray]:
    """Log-mass of t frames for the first i tokens, (T + 1, L + 1): in the blank, and in the last token."""
    time, length = len(log_probs), len(tokens)
    quiet, ended = np.full((2, time + 1, length + 1), -np.inf)
    quiet[0, 0] = 0.0
    repeated = np.zeros(length, bool)
    repeated[1:] = tokens[1:] == tokens[:-1]
    for t, frame in enumerate(log_probs):
        quiet[t + 1] = np.logaddexp(quiet[t], ended[t]) + frame[blank]
        free = np.where(repeated, quiet[t, :-1], np.logaddexp(quiet[t, :-1], ended[t, :-1]))
        ended[t + 1, 1:] = np.logaddexp(ended[t, 1:], free) + frame[tokens]
    return quiet, ended


def _backward(log_probs: np.ndarray, tokens: np.ndarray, blank: int) -> np.ndarray:
    """Log-mass of the frames from t on for the tokens from j on, which begin right there: (T + 1, L + 1).

    In the last column, for no tokens: 0 at the end of the frames, -inf before.
    """
    time, length = len(log_probs), len(tokens)
    entering = np.full((time + 1, length + 1), -np.inf)
    entering[time, length] = 0.0
    repeated = np.zeros(length, bool)
    repeated[:-1] = tokens[1:] == tokens[:-1]
    held = np.full(length, -np.inf)  # frames from t on, of which t is in token j
    rest = entering[time].copy()  # with any beginning: the blank or token j
    quiet = rest  # of which t is a blank before token j, or there are no frames left
    for t in reversed(range(time)):
        held = np.logaddexp(held, np.where(repeated, quiet[1:], rest[1:])) + log_probs[t, tokens]
        quiet = rest + log_probs[t, blank]
        entering[t, :length] = held
        rest = np.logaddexp(quiet, entering[t])
    return entering


def _with_free_token(
    log_probs: np.ndarray,
    tokens: np.ndarray,
    classes: np.ndarray,
    blank: int,
    variables: tuple[np.ndarray, np.ndarray, np.ndarray],
    before: np.ndarray,
    after: np.ndarray,
) -> np.ndarray:
    """Log-probability of prefix + class + suffix for S pairs of prefix and suffix: (S, K)."""
    quiet, ended, entering = variables
    sides = np.concatenate([[NONE], tokens, [NONE]])
    repeats_left = sides[before][:, None] == classes  # (S, K): the class is the prefix's last token
    repeats_right = sides[after + 1][:, None] == classes
    shape = (len(before), len(classes))
    held, hushed, total = np.full((3, *shape), -np.inf)  # in the class; in the blank after it
    for t, frame in enumerate(log_probs):
        enters = entering[t, after][:, None]  # the suffix begins in this frame
        total = np.logaddexp(total, hushed + enters)
        total = np.logaddexp(total, np.where(repeats_right, -np.inf, held) + enters)
        came = np.where(repeats_left, -np.inf, ended[t, before][:, None])
        came = np.logaddexp(came, quiet[t, before][:, None])
        hushed = np.logaddexp(hushed, held) + frame[blank]
        held = np.logaddexp(held, came) + frame[classes]
    at_end = entering[-1, after][:, None]
    return np.logaddexp(total, np.logaddexp(held, hushed) + at_end)


def _without(tokens: np.ndarray, quiet: np.ndarray, ended: np.ndarray, entering: np.ndarray) -> np.ndarray:
    """Log-probability of the tokens but one, for each: (L,)."""
    length = len(tokens)
    prefix, suffix = np.arange(length), np.arange(1, length + 1)
    sides = np.concatenate([[NONE], tokens, [NONE - 1]])
    meets = sides[prefix] == sides[suffix + 1]  # the same token on both sides: a blank must part them
    came = np.logaddexp(quiet[:, prefix], np.where(meets, -np.inf, ended[:, prefix]))  # (T + 1, L)
    return np.logaddexp.reduce(came + entering[:, suffix], axis=0)


def _slot(
    classes: np.ndarray, with_class: np.ndarray, with_none: float, frame: int, least: float, most: int
) -> TokenSlot:
    logs = np.append(with_class, with_none)
    logs = logs - np.logaddexp.reduce(logs)
    order = np.argsort(-logs, kind="stable")[:most]
    order = order[(np.exp(logs[order]) >= least) | (np.arange(len(order)) == 0)]
    tokens = np.append(classes, NONE)[order]
    return TokenSlot(tuple(tokens.tolist()), tuple(logs[order].tolist()), int(frame))
