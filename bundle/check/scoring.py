"""Answers of an artefact and what was said in; the share that is right out. No framework: for any runtime."""

from __future__ import annotations

import numpy as np
from rapidfuzz.distance import Levenshtein


def score(answers: np.ndarray, references: np.ndarray) -> float:
    """Accuracy, from 0 to 1 (of tokens it can be below 0).

    Args:
        answers: (N, labels) logits of clips, or (N, rows, classes) of CTC, the last class being the blank.
        references: (N,) int labels, or (N, most tokens) int ended by -1.

    Returns:
        The share of clips that are right; of CTC 1 - token error rate of the greedy decoding.
    """
    if answers.ndim == 2:
        return float((answers.argmax(axis=1) == references).mean())
    spoken = [row[row >= 0].tolist() for row in references]
    errors = sum(
        Levenshtein.distance(one, other) for one, other in zip(spoken, decoded(answers), strict=True)
    )
    return 1 - errors / max(1, sum(map(len, spoken)))


def decoded(answers: np.ndarray) -> list[list[int]]:
    """(N, rows, classes) CTC logits → the tokens of each: best classes, repeats merged, blanks dropped."""
    blank = answers.shape[-1] - 1
    best = answers.argmax(axis=-1)  # (N, rows)
    begins = np.concatenate([np.ones_like(best[:, :1], bool), best[:, 1:] != best[:, :-1]], axis=1)
    return [row[keep].tolist() for row, keep in zip(best, begins & (best != blank), strict=True)]


def final_answers(answers: np.ndarray, delay: int) -> np.ndarray:
    """A stream's answers clip by clip → what counts.

    Args:
        answers: (N, chunks, labels) of keywords: the last one counts. Or (N, chunks, rows, classes) of CTC:
            all rows.
        delay: rows of CTC at a stream's beginning that stand for no sound.

    Returns:
        (N, labels), or (N, rows, classes).
    """
    if answers.ndim == 3:
        return answers[:, -1]
    rows = answers.reshape(len(answers), -1, answers.shape[-1])  # (N, chunks · rows, classes)
    return rows[:, delay:]
