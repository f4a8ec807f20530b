"""Hanzi that somebody proposes for syllables in; how probable the model that searches holds them, out.

What a converter looks for is the highest of these scores: if the truth has a higher one than the output, the
search missed it, and no better model was needed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from model_language.search.grid import HistoryModel, Searched, length_batches
from model_language.vocabulary.symbols import PAD_ID


def given_scores(
    model: Searched, sentences: Sequence[Sequence[str]], hanzi: Sequence[Sequence[str]]
) -> list[float]:
    """Log-probabilities as the search adds them up; see :class:`model_language.converters.base.Converter`.

    Args:
        model: the converter.
        sentences: syllables.
        hanzi: of each sentence the characters to score.
    """
    sizes = [(len(syllables), len(written)) for syllables, written in zip(sentences, hanzi, strict=True)]
    result = [0.0 if size == (0, 0) else -np.inf for size in sizes]
    possible = [i for i, (syllables, written) in enumerate(sizes) if syllables == written > 0]
    for places in length_batches([sizes[i][0] for i in possible], model.batch_syllables):
        batch = [possible[place] for place in places]
        grid = model.grid([sentences[i] for i in batch])
        for row, i in enumerate(batch):
            ids = model.symbols.encode_hanzi(hanzi[i])  # (L,)
            candidates, scores = grid.candidates[row, : len(ids)], grid.scores[row, : len(ids)]  # (L, K)
            own = np.where(candidates == ids[:, None], scores, -np.inf).max(axis=1)
            result[i] = float(own.sum(dtype=np.float64)) + _history_score(model.history_model, ids)
            if model.path_model:
                result[i] += float(model.path_model.worth(ids[None])[0])
    return result


def _history_score(model: HistoryModel | None, ids: np.ndarray) -> float:
    """log P of the hanzi (L,) by those before them, and of the sentence's end."""
    if model is None:
        return 0.0
    ended = np.append(ids, PAD_ID)  # (L + 1,): id 0 is the boundary
    begun = np.concatenate([np.full(model.history, PAD_ID), ended])
    histories = sliding_window_view(begun, model.history)[:-1]  # (L + 1, history), before each of them
    return float(model.log_probs(histories, ended[:, None]).sum(dtype=np.float64))
