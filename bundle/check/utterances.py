"""Runs a model on clips or padded whole utterances: compares logits with the source model's, and predicts.

Keyword models return a row of logits per clip, acoustic models rows of CTC logits, converters a row of logits
per syllable. NumPy is enough: the same code measures the source model and every runtime.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bundle.check.scoring import decoded

BATCH = 8
"""Utterances per call when error rates are measured, if the model accepts several."""
_MORE_PADDING = 37
"""Positions appended to a batch to check that padding has no influence; no multiple of a model's stride."""

Model = Callable[[np.ndarray, np.ndarray | None], np.ndarray]
"""Function: inputs (N, T, …) and their lengths (N,), None for clips → logits (N, rows, classes) or, of clips,
(N, labels)."""


def row_counts(lengths: np.ndarray, row_stride: int) -> np.ndarray:
    """Number of rows of logits for inputs of these lengths: (N,) int."""
    return -(-lengths // row_stride)


def without_padding(outputs: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Outputs (N, R, classes) with zeros after the valid ``rows`` (N,) of each utterance."""
    valid = np.arange(outputs.shape[1]) < rows[:, None]  # (N, R)
    return np.where(valid[:, :, None], outputs, np.float32(0))


def compare(model: Model, golden: Mapping[str, np.ndarray], row_stride: int) -> dict[str, Any]:
    """Compare a model's outputs with those of the source model.

    Args:
        model: the model.
        golden: ``inputs`` (N, T, …), ``lengths`` (N,) and the source model's outputs ``non_stream``
            (N, R, classes) without padding.
        row_stride: input positions per row.

    Returns:
        See :func:`bundle.check.measure_artefact.compare_with_source`. The differences are those of ``batch``
        (all utterances in one padded batch), ``alone`` (one by one without padding) and ``padded`` (the batch
        with more padding); the agreement is that of ``alone``.
    """
    inputs, lengths, expected = golden["inputs"], golden["lengths"], golden["non_stream"]
    rows = row_counts(lengths, row_stride)
    more = [(0, 0), (0, _MORE_PADDING), *[(0, 0)] * (inputs.ndim - 2)]
    batch = without_padding(model(inputs, lengths), rows)
    padded = without_padding(model(np.pad(inputs, more), lengths), rows)[:, : expected.shape[1]]
    alone = np.zeros_like(expected)
    for i, length in enumerate(lengths):
        alone[i, : rows[i]] = model(inputs[[i], :length], lengths[[i]])[0, : rows[i]]
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
    }


def predicted(
    model: Model, tests: Mapping[str, np.ndarray], row_stride: int, batch_size: int = BATCH
) -> list[list[int]]:
    """The label that a model predicts for each clip, or its tokens.

    Args:
        model: the model.
        tests: ``inputs``, and ``lengths`` of whole utterances. For a model with CTC outputs also ``blank``,
            its class; for a converter ``candidates`` (syllables, K), the possible hanzi ids of each syllable,
            padded with 0.
        row_stride: input positions per row, for a model of whole utterances; 0 for one of clips.
        batch_size: utterances per call.
    """
    blank = int(tests.get("blank", -1))
    if not row_stride:
        return decoded(model(tests["inputs"], None), blank)
    found: list[list[int]] = [[] for _ in tests["lengths"]]
    order = np.argsort(tests["lengths"], kind="stable")  # utterances of one batch have similar lengths
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        lengths = tests["lengths"][batch]
        inputs = tests["inputs"][batch, : lengths.max()]
        outputs, rows = model(inputs, lengths), row_counts(lengths, row_stride)
        if "candidates" in tests:
            tokens = best_candidates(outputs, inputs, rows, tests["candidates"])
        else:
            tokens = [decoded(outputs[[i], :count], blank)[0] for i, count in enumerate(rows)]
        for row, utterance in zip(batch, tokens, strict=True):
            found[row] = utterance
    return found


def best_candidates(
    logits: np.ndarray, syllables: np.ndarray, rows: np.ndarray, candidates: np.ndarray
) -> list[list[int]]:
    """The best hanzi of each syllable among its candidates.

    Args:
        logits: (N, L, hanzi).
        syllables: (N, L) int32 ids.
        rows: (N,), number of syllables of each sentence.
        candidates: (syllable ids, K) int32 hanzi ids, padded with 0.

    Returns:
        the hanzi ids of each sentence.
    """
    ids = candidates[syllables]  # (N, L, K)
    scores = np.where(ids > 0, np.take_along_axis(logits, ids, axis=2), -np.inf)
    best = np.take_along_axis(ids, scores.argmax(axis=2)[:, :, None], axis=2)[:, :, 0]  # (N, L)
    return [hanzi[:count].tolist() for hanzi, count in zip(best, rows, strict=True)]
