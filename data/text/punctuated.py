"""Reads passages of punctuated text, and makes training rows for the punctuation of recognised speech.

A row is a stretch of passages, one after the other, as hanzi, the pause after each and the mark after each.
Texts have no pauses: they are drawn. In recordings of 900 sentences of Common Voice with a mark inside
(training speakers), the middles of two syllables are less than 0.3 s apart in 86 % of the places without a
mark, in 26 % of those with ， and in 33 % of those with 、. Where a recognised segment ends, its row may end
too: what follows is not known when its marks are written.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from data.text.sources import read_lines
from utils.errors import CorpusError, require
from utils.mandarin.punctuation import SEGMENT_END, UNKNOWN_PAUSE, split_marks
from utils.vocabulary import Vocabulary

Passage = tuple[str, list[int]]
"""Characters, and the index of the mark after each."""
_SENTENCE_END = (0.02, 0.04, 0.05, 0.10, 0.09, 0.70)
_PAUSES_AFTER = np.array(
    [
        (0.86, 0.12, 0.011, 0.005, 0.002, 0.002),
        (0.23, 0.25, 0.16, 0.18, 0.05, 0.13),
        *[_SENTENCE_END] * 3,
        (0.33, 0.31, 0.145, 0.15, 0.045, 0.02),
    ]
)
"""Probability of the pauses 1 to 6 after each mark. Those in segments after ， 、 and no mark are measured;
those after 。？！, which single sentences do not show, and how often a segment ends are assumed."""
_BLURRED = 0.3  # readers differ: up to this fraction of a row's pauses does not depend on the marks
_WITHOUT_PAUSES = 0.4  # fraction of the rows whose pauses are unknown, as in a text
_WHOLE = 0.5  # fraction of these that end where a passage does


@dataclass(frozen=True, eq=False)
class Passages:
    """Passages of text, one after the other.

    Attributes:
        hanzi: (n,) int32, ids.
        marks: (n,) int32, indices into :data:`utils.mandarin.punctuation.MARKS`, what follows each hanzi.
        starts: (passages + 1,) int64, the first hanzi of each, and n.
    """

    hanzi: np.ndarray
    marks: np.ndarray
    starts: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1

    def places(self, number: int) -> np.ndarray:
        """Indices of the hanzi of a passage."""
        return np.arange(self.starts[number], self.starts[number + 1])


def read_passages(sources: Sequence[str]) -> list[Passage]:
    """The passages of text files, one a line, without those that have no hanzi.

    Raises:
        CorpusError: a file can't be read, is not UTF-8, or there is no punctuation.
    """
    found = [split_marks(line) for source in sources for line in read_lines(source)]
    found = [passage for passage in found if passage[0]]
    require(
        any(any(marks) for _, marks in found),
        "no punctuation in the text",
        where=", ".join(sources),
        hint="give passages with ，。？！、, one a line",
        error=CorpusError,
    )
    return found


def encode_passages(passages: Iterable[Passage], vocabulary: Vocabulary) -> Passages:
    """Passages with the ids of their characters; those that are not in the vocabulary are unknown."""
    texts, marks = zip(*passages, strict=True)
    hanzi = vocabulary.encode_or_unknown("".join(texts))
    starts = np.cumsum([0, *map(len, texts)])
    return Passages(hanzi, np.array(list(chain.from_iterable(marks)), np.int32), starts)


def draw_pauses(marks: np.ndarray, random: np.random.Generator, blurred: float = 0.0) -> np.ndarray:
    """A pause after each hanzi, drawn for the mark there: (n,) → (n,) int32.

    Args:
        marks: indices of the marks.
        random: generator.
        blurred: fraction of the pauses that do not depend on the mark.
    """
    probabilities = (1 - blurred) * _PAUSES_AFTER + blurred * _PAUSES_AFTER.mean(axis=0)
    drawn = (random.random((len(marks), 1)) > probabilities.cumsum(axis=1)[marks]).sum(axis=1)
    return np.minimum(drawn + 1, SEGMENT_END).astype(np.int32)


def draw_row(passages: Passages, length: int, random: np.random.Generator) -> np.ndarray:
    """A training row: hanzi, pauses and marks, (3, at most ``length``) int32."""
    pieces, size = [], 0
    while size < length:
        pieces.append(passages.places(int(random.integers(len(passages)))))
        size += len(pieces[-1])
    places = np.concatenate(pieces)[:length]
    if random.random() < _WITHOUT_PAUSES:
        if random.random() < _WHOLE:
            places = places[: size - len(pieces[-1])] if len(pieces) > 1 else places
        pauses = np.full(len(places), UNKNOWN_PAUSE, np.int32)
    else:
        pauses = draw_pauses(passages.marks[places], random, _BLURRED * random.random())
        (ends,) = np.nonzero(pauses == SEGMENT_END)
        if len(ends):
            end = int(random.choice(ends)) + 1
            places, pauses = places[:end], pauses[:end]
    return np.stack([passages.hanzi[places], pauses, passages.marks[places]])
