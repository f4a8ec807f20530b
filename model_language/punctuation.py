"""Adds punctuation to recognised segments, by a packed punctuation network in ONNX Runtime.

A mark depends on the hanzi and the pauses of the segment and on those of the segments before it, not on later
ones: the text of a segment is final when the segment is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from model_language.vocabulary.lexicon import UNREADABLE
from utils.backend.onnx_session import open_session
from utils.hypotheses.recognition import Ending, Recognition
from utils.mandarin.punctuation import MARKS, UNKNOWN_PAUSE, pauses_between
from utils.run_folder.run import PRETRAINED_PUNCTUATION, open_run
from utils.vocabulary import Vocabulary

if TYPE_CHECKING:
    import onnxruntime

CONTEXT = 64
"""Hanzi before a segment that its marks may depend on."""


@dataclass(frozen=True, eq=False)
class Punctuation:
    """A packed punctuation network.

    Attributes:
        vocabulary: the hanzi, in the order of the network's ids.
        session: the network.
    """

    vocabulary: Vocabulary
    session: onnxruntime.InferenceSession

    def marks(self, hanzi: str, pauses: np.ndarray | None = None) -> list[str]:
        """The mark after each hanzi, or an empty string.

        Args:
            hanzi: text without punctuation.
            pauses: (hanzi,) int32, see :mod:`utils.mandarin.punctuation`; None: they are unknown.
        """
        if not hanzi:
            return []
        ids = self.vocabulary.encode_or_unknown(hanzi)
        if pauses is None:
            pauses = np.full(len(ids), UNKNOWN_PAUSE, np.int32)
        logits = self.session.run(None, {"hanzi": ids[None], "pauses": pauses[None]})[0][0]
        return [MARKS[index] for index in logits.argmax(axis=1)]


class Punctuator:
    """Adds the marks to the segments of one recording, or of one stream, in their order."""

    def __init__(self, punctuation: Punctuation):
        self._punctuation = punctuation
        self._hanzi, self._pauses = "", np.zeros(0, np.int32)  # of the segments before

    def __call__(self, segment: Recognition) -> Recognition:
        """The segment, with marks in the text of its syllables (``labels``); a partial result as it is."""
        if not _is_text(segment):
            return segment
        texts = segment.syllable_texts()
        hanzi = self._hanzi + "".join(text if len(text) == 1 else UNREADABLE for text in texts)
        pauses = np.append(self._pauses, pauses_between(np.mean(segment.times, axis=1)))
        marks = self._punctuation.marks(hanzi, pauses)[len(self._hanzi) :]
        self._hanzi, self._pauses = hanzi[-CONTEXT:], pauses[-CONTEXT:]
        labels, mark = [""] * len(texts), ""
        for text, first, end in segment.written():
            before, mark = mark, marks[end - 1]
            labels[first] = (text.lstrip() if before else text) + mark
        return replace(segment, labels=tuple(labels))


def punctuated(
    events: Iterable[Recognition | Ending], punctuation: Punctuation | None
) -> Iterator[Recognition | Ending]:
    """The events of a recording, with punctuation if there is a network for it."""
    written = Punctuator(punctuation) if punctuation else None
    for event in events:
        yield written(event) if written and isinstance(event, Recognition) else event


def _is_text(segment: Recognition) -> bool:
    """Whether it is the final text of speech, not a phrase."""
    return segment.is_final and not segment.phrase and bool(segment.hanzi) and bool(segment.times)


def load_punctuation(path: str | Path = PRETRAINED_PUNCTUATION) -> Punctuation:
    """The punctuation network of a folder that ``bundle.pack`` wrote; by default this project's.

    Raises:
        RunError: a file is missing or damaged.
    """
    run = open_run(path, "language")
    vocabulary = Vocabulary.load(run.part(run.vocabulary("hanzi.txt")))
    return Punctuation(vocabulary, open_session(run.part(run.packed_network)))
