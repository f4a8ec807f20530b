"""Counts the errors of a model's outputs: wrong labels of clips, or edits of greedily decoded CTC tokens.

It needs no framework, so the same code scores every runtime.
"""

from collections.abc import Sequence

import numpy as np

from utils.padding import pad_rows


def label_errors(outputs: np.ndarray, references: np.ndarray, blank: int | None) -> np.ndarray:
    """Errors of each clip.

    Args:
        outputs: (N, labels) logits of clips, or (N, rows, classes) CTC logits.
        references: (N,) int labels, or (N, longest) int tokens, padded with -1.
        blank: class of the blank, for CTC.

    Returns:
        (N,) int: 1 if the label is wrong; for CTC the substitutions, deletions and insertions of the greedy
        decoding.
    """
    if outputs.ndim == 2:
        return (outputs.argmax(axis=1) != references).astype(int)
    return token_errors(references, decoded(outputs, blank))


def token_errors(references: np.ndarray, hypotheses: Sequence[Sequence[int]]) -> np.ndarray:
    """Edits of each utterance: references (N, longest), padded with -1, and N token sequences → (N,) int."""
    from rapidfuzz.distance import Levenshtein  # not on a device, which verifies a bundle without test clips

    spoken = [row[row >= 0].tolist() for row in references]
    return np.array([*map(Levenshtein.distance, spoken, hypotheses)], int)


def label_count(references: np.ndarray) -> int:
    """Number of labels, (N,) int, or of tokens, (N, longest) int padded with -1; at least 1."""
    return max(1, int((references >= 0).sum()))


def predicted_labels(outputs: np.ndarray, blank: int | None) -> np.ndarray:
    """What a model predicts, in the form of references.

    Args:
        outputs: see :func:`label_errors`.
        blank: see :func:`label_errors`.

    Returns:
        (N,) int labels, or for CTC (N, longest) int tokens, padded with -1.
    """
    return outputs.argmax(axis=1) if outputs.ndim == 2 else pad_rows(decoded(outputs, blank), fill=-1)


def accuracy(errors: np.ndarray, references: np.ndarray) -> float:
    """1 minus the errors per label; from 0 to 1, for tokens also below 0.

    Args:
        errors: (N,) int, see :func:`label_errors`.
        references: (N,) int labels, or (N, longest) int tokens, padded with -1.
    """
    return float(1 - errors.sum() / label_count(references))


def decoded(outputs: np.ndarray, blank: int) -> list[list[int]]:
    """Greedy decoding: (N, rows, classes) CTC logits, class of the blank → N token sequences."""
    best = outputs.argmax(axis=-1)  # (N, rows)
    begins = np.concatenate([np.ones_like(best[:, :1], bool), best[:, 1:] != best[:, :-1]], axis=1)
    return [row[keep].tolist() for row, keep in zip(best, begins & (best != blank), strict=True)]


def final_outputs(outputs: np.ndarray, delay: int) -> np.ndarray:
    """A stream's outputs for clips → the outputs that count.

    Args:
        outputs: (N, chunks, labels) of keywords: the last one counts. Or (N, chunks, rows, classes) of CTC:
            all rows count.
        delay: CTC rows at the start of a stream that belong to no sound.

    Returns:
        (N, labels), or (N, rows, classes).
    """
    if outputs.ndim == 3:
        return outputs[:, -1]
    rows = outputs.reshape(len(outputs), -1, outputs.shape[-1])  # (N, chunks · rows, classes)
    return rows[:, delay:]
