"""Joins the segments of a recording, each with its n-best list, to the result of the whole recording."""

import heapq
import itertools
from collections.abc import Sequence
from operator import attrgetter

import numpy as np

from utils.hypotheses.recognition import Alternative, Recognition


def whole_recording(
    name: str, seconds: float, segments: Sequence[Recognition], n_best: int = 1
) -> Recognition:
    """A recording of its segments; its ``n_best`` hypotheses have the highest sums of scores."""
    best, score = [Alternative((), "", 0.0)], attrgetter("score")
    for segment in segments:
        joined = (_joined(*pair) for pair in itertools.product(best, segment.n_best))
        # Equal texts come from different cuts (ma + ma ni, ma ma + ni): the last and best is kept.
        unique = {(found.pinyin, found.hanzi): found for found in sorted(joined, key=score)}
        best = heapq.nlargest(n_best, unique.values(), key=score)
    certainty = [found.certainty for found in segments if found.certainty is not None and found.times]
    return Recognition(
        start=0.0,
        end=seconds,
        times=tuple(itertools.chain.from_iterable(segment.times for segment in segments)),
        n_best=tuple(best),
        confidence=tuple(itertools.chain.from_iterable(segment.confidence for segment in segments)),
        certainty=np.concatenate(certainty) if certainty else None,
        id=name,
        segments=tuple(segments),
    )


def _joined(left: Alternative, right: Alternative) -> Alternative:
    """The hypothesis of a stretch and the one after it."""
    return Alternative(
        left.pinyin + right.pinyin,
        left.hanzi + right.hanzi,
        left.score + right.score,
        left.confidence + right.confidence,
    )
