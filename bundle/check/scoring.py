"""Answers of an artefact and what was said in; the errors out. No framework: for any runtime."""

from __future__ import annotations

import numpy as np
from rapidfuzz.distance import Levenshtein


def label_errors(answers: np.ndarray, references: np.ndarray) -> np.ndarray:
    """Errors of each clip.

    Args:
        answers: (N, labels) logits of clips, or (N, rows, classes) of CTC, the last class being the blank.
        references: (N,) int labels, or (N, most tokens) int ended by -1.

    Returns:
        (N,) int: 1 where the label is wrong; of CTC the substitutions, deletions and insertions of the greedy
        decoding.
    """
    if answers.ndim == 2:
        return (answers.argmax(axis=1) != references).astype(int)
    spoken = [row[row >= 0].tolist() for row in references]
    pairs = zip(spoken, decoded(answers), strict=True)
    return np.array([Levenshtein.distance(reference, hypothesis) for reference, hypothesis in pairs], int)


def label_count(references: np.ndarray) -> int:
    """Labels of clips, (N,) int, or tokens of utterances, (N, most tokens) int ended by -1; at least 1."""
    return max(1, int((references >= 0).sum()))


def accuracy(errors: np.ndarray, references: np.ndarray) -> float:
    """1 minus errors per label, from 0 to 1; of tokens it can be below 0."""
    return float(1 - errors.sum() / label_count(references))


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
