"""Whole utterances, padded to one length, in; a model's answers without the padding, and its errors, out.

Acoustic models answer with rows of CTC logits, converters with a row of logits for each syllable. NumPy and
RapidFuzz only: the source model and every runtime are measured by the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein

from bundle.check.scoring import decoded

BATCH = 8
"""Utterances in a call when error rates are measured, of a model that takes several."""
_MORE_PADDING = 37
"""Positions appended to a batch, to see that padding has no influence; no model's stride divides it."""

Answer = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""inputs (N, T, …) and their lengths (N,) → logits (N, rows, classes)."""


def row_counts(lengths: np.ndarray, row_stride: int) -> np.ndarray:
    """Rows of logits that belong to inputs of these lengths: (N,) int."""
    return -(-lengths // row_stride)


def without_padding(answers: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Answers (N, R, classes) with zeros in place of what follows each utterance's own ``rows`` (N,)."""
    valid = np.arange(answers.shape[1]) < rows[:, None]  # (N, R)
    return np.where(valid[:, :, None], answers, np.float32(0))


def compare(answer: Answer, golden: Mapping[str, np.ndarray], row_stride: int) -> dict[str, Any]:
    """Compare a model's answers with those of the source model.

    Args:
        answer: the model.
        golden: ``inputs`` (N, T, …), ``lengths`` (N,) and the source's answers ``non_stream`` (N, R, classes)
            without padding.
        row_stride: input positions a row.

    Returns:
        As :func:`bundle.check.proof.prove`. The differences are of ``batch`` (all utterances in one padded
        batch), ``alone`` (each one by itself without padding) and ``padded`` (the batch with more padding);
        the agreement is that of ``alone``.
    """
    inputs, lengths, expected = golden["inputs"], golden["lengths"], golden["non_stream"]
    rows = row_counts(lengths, row_stride)
    more = [(0, 0), (0, _MORE_PADDING), *[(0, 0)] * (inputs.ndim - 2)]
    batch = without_padding(answer(inputs, lengths), rows)
    padded = without_padding(answer(np.pad(inputs, more), lengths), rows)[:, : expected.shape[1]]
    alone = np.zeros_like(expected)
    for i, length in enumerate(lengths):
        alone[i, : rows[i]] = answer(inputs[[i], :length], lengths[[i]])[0, : rows[i]]
    valid = np.arange(expected.shape[1]) < rows[:, None]  # (N, R)
    same = alone.argmax(axis=-1) == expected.argmax(axis=-1)
    return {
        "difference": {
            "batch": float(np.abs(batch - expected).max()),
            "alone": float(np.abs(alone - expected).max()),
            "padded": float(np.abs(padded - expected).max()),
        },
        "largest": float(np.abs(expected).max()),
        "agreement": float(same[valid].mean()),
        "answers": {"batch": batch},
    }


def label_errors(
    answer: Answer, tests: Mapping[str, np.ndarray], row_stride: int, batch_size: int = BATCH
) -> np.ndarray:
    """Token errors (substitutions, deletions, insertions) of each utterance: (N,) int.

    Args:
        answer: the model.
        tests: ``inputs``, ``lengths`` and ``references`` (N, most tokens), ended by -1. Of a converter also
            ``candidates`` (syllables, K), the hanzi ids that each syllable may become, filled with 0.
        row_stride: input positions a row.
        batch_size: utterances in a call.
    """
    errors = np.zeros(len(tests["lengths"]), int)
    order = np.argsort(tests["lengths"], kind="stable")  # utterances of one batch have similar lengths
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        lengths = tests["lengths"][batch]
        inputs = tests["inputs"][batch, : lengths.max()]
        answers, rows = answer(inputs, lengths), row_counts(lengths, row_stride)
        if "candidates" in tests:
            hypotheses = best_candidates(answers, inputs, rows, tests["candidates"])
        else:
            hypotheses = [decoded(answers[[i], :count])[0] for i, count in enumerate(rows)]
        for row, hypothesis in zip(batch, hypotheses, strict=True):
            reference = [token for token in tests["references"][row].tolist() if token >= 0]
            errors[row] = Levenshtein.distance(reference, hypothesis)
    return errors


def best_candidates(
    logits: np.ndarray, syllables: np.ndarray, rows: np.ndarray, candidates: np.ndarray
) -> list[list[int]]:
    """The best hanzi of each syllable among those that are read like it.

    Args:
        logits: (N, L, hanzi).
        syllables: (N, L) int32 ids.
        rows: (N,), syllables of each sentence.
        candidates: (syllable ids, K) int32 hanzi ids, filled with 0.

    Returns:
        hanzi ids of each sentence.
    """
    found = candidates[syllables]  # (N, L, K)
    scores = np.where(found > 0, np.take_along_axis(logits, found, axis=2), -np.inf)
    best = np.take_along_axis(found, scores.argmax(axis=2)[:, :, None], axis=2)[:, :, 0]  # (N, L)
    return [ids[:count].tolist() for ids, count in zip(best, rows, strict=True)]
