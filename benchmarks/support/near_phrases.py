"""Makes a phrase file of phrases and their near neighbours: one tone, final or syllable away."""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache

from recognition.phrases.grammar import parse_grammar
from recognition.phrases.phrase_list import list_phrases
from utils.mandarin.pinyin import Syllable, hanzi_to_pinyin, split_syllable

COMMON = range(0xB0, 0xD8)  # first byte in GB 2312 of the 3,755 common characters


def with_neighbours(phrases: Sequence[str], seed: int = 0) -> str:
    """The text of a phrase file: each phrase and three neighbours that sound different from all phrases.

    Args:
        phrases: distinct texts of hanzi.
        seed: chooses the neighbours.
    """
    rng = random.Random(seed)
    listed = list_phrases(parse_grammar("\n".join(phrases)))
    taken = {way for phrase in listed for way in phrase.pronunciations}
    lines = list(phrases)
    for phrase in phrases:
        for kind in ("tone", "final", "syllable"):
            neighbours = [near for near in _neighbours(phrase, kind) if near[1] not in taken]
            if neighbours:
                text, syllables = rng.choice(neighbours)
                taken.add(syllables)
                lines.append(f"{text}\t{' '.join(syllables)}")
    return "\n".join(lines)


def _neighbours(text: str, kind: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Texts and syllables that differ from a phrase in one syllable."""
    pinyin = hanzi_to_pinyin(text)
    for index, syllable in enumerate(pinyin):
        ours = split_syllable(syllable)
        for other, characters in _common_characters().items():
            if other != syllable and _differs(ours, split_syllable(other), kind):
                near = text[:index] + characters[0] + text[index + 1 :]
                yield near, (*pinyin[:index], other, *pinyin[index + 1 :])


def _differs(ours: Syllable, other: Syllable, kind: str) -> bool:
    """Whether a syllable has another tone only, another final only, or neither of them in common."""
    same = ours.initial == other.initial, ours.final == other.final, ours.tone == other.tone
    return (
        same
        == {
            "tone": (True, True, False),
            "final": (True, False, True),
            "syllable": (False, False, False),
        }[kind]
    )


@cache
def _common_characters() -> dict[str, list[str]]:
    """Syllable → the common characters with this reading."""
    found: dict[str, list[str]] = defaultdict(list)
    for first in COMMON:
        for second in range(0xA1, 0xFF):
            character = bytes((first, second)).decode("gb2312", errors="ignore")
            if character:
                found[hanzi_to_pinyin(character)[0]].append(character)
    return dict(found)
