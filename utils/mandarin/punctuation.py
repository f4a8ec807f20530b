"""The punctuation marks of recognised speech, and the pauses that help to find them."""

import numpy as np

MARKS = ("", "，", "。", "？", "！", "、")
"""What may follow a hanzi; index 0: nothing."""
PAUSE_LIMITS = (0.3, 0.4, 0.5, 0.7)
"""Seconds between the middles of two syllables that separate the pauses 1 to 5."""
UNKNOWN_PAUSE, SEGMENT_END = 0, len(PAUSE_LIMITS) + 2
"""The pause after a hanzi of a text, and after the last one of a recognised segment."""
PAUSES = SEGMENT_END + 1
_WRITTEN_AS = {"；": "，", "：": "，", "…": "。", ",": "，", "?": "？", "!": "！"}


def without_marks(text: str) -> str:
    """A text without the marks at its end."""
    return text.rstrip("".join(MARKS))


def split_marks(text: str) -> tuple[str, list[int]]:
    """The characters of a text without its marks, and the index in :data:`MARKS` of what follows each."""
    characters, marks = [], []
    for character in text:
        mark = _WRITTEN_AS.get(character, character)
        if mark not in MARKS:
            characters.append(character)
            marks.append(0)
        elif marks and not marks[-1]:
            marks[-1] = MARKS.index(mark)
    return "".join(characters), marks


def f1_scores(reference: np.ndarray, found: np.ndarray) -> dict[str, float]:
    """F1 of each mark, and of ``all`` together, where a wrong mark counts as missed and as false."""
    scores = {}
    for name, kinds in {**{mark: [number] for number, mark in enumerate(MARKS) if mark}, "all": None}.items():
        wanted, given = (np.isin(each, kinds) if kinds else each > 0 for each in (reference, found))
        correct = np.sum(wanted & (reference == found))
        scores[name] = float(2 * correct / max(1, wanted.sum() + given.sum()))
    return scores


def pauses_between(middles: np.ndarray) -> np.ndarray:
    """The pause after each syllable of a segment: their middles (n,) in seconds → (n,) int32."""
    pauses = np.full(len(middles), SEGMENT_END, np.int32)
    pauses[:-1] = np.searchsorted(PAUSE_LIMITS, np.diff(middles), side="right") + 1
    return pauses
