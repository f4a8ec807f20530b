"""Finds the citation reading and the spoken reading (tone sandhi) of a sentence, in canonical syllables.

Corpora have the citation tones; the synthesiser needs the spoken tones where it does not know the rule.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from utils.mandarin.pinyin import hanzi_to_pinyin, tone_of
from utils.mandarin.sandhi import bu_sandhi, third_tone_sandhi, yi_sandhi

PAUSE = "，"

# Words whose reading by pypinyin is wrong, or not the one meant in these sentences.
CITATION_SYLLABLES: dict[str, str] = {
    "得了": "de2 le5",
    "只": "zhi1",
    "调": "tiao2",
    "教": "jiao1",
    "长": "chang2",
    "一场": "yi1 chang2",
    "弹吉他": "tan2 ji2 ta1",
    "旋转": "xuan2 zhuan3",
    "种满": "zhong4 man3",
    "大夫": "dai4 fu5",
    "丈夫": "zhang4 fu5",
}

_UNCHANGED = {"一": "yi1", "不": "bu4"}


@dataclass(frozen=True)
class Sentence:
    """A sentence in words, with one canonical citation syllable for each hanzi.

    Attributes:
        words: hanzi, divided as in a THCHS-30 transcript.
        pinyin: citation reading, ``("ni3", "hao3")``.
        pauses: the numbers of syllables after which the speaker pauses.
    """

    words: tuple[str, ...]
    pinyin: tuple[str, ...]
    pauses: tuple[int, ...] = ()

    @property
    def hanzi(self) -> str:
        """The sentence without spaces."""
        return "".join(self.words)


def make_sentence(items: Iterable[str]) -> Sentence:
    """Make a sentence of words and ``PAUSE`` marks, with the citation reading of each word."""
    words: list[str] = []
    pinyin: list[str] = []
    pauses: list[int] = []
    for item in items:
        if item == PAUSE:
            pauses.append(len(pinyin))
        else:
            words.append(item)
            pinyin.extend(word_reading(item))
    return Sentence(tuple(words), tuple(pinyin), tuple(p for p in pauses if 0 < p < len(pinyin)))


@cache
def word_reading(word: str) -> tuple[str, ...]:
    """The citation syllables of a word: of the table here, or pypinyin's without tone sandhi."""
    if word in CITATION_SYLLABLES:
        return tuple(CITATION_SYLLABLES[word].split())
    # pypinyin's phrases give 一 and 不 their spoken tones (是不是 shi4 bu2 shi4); citation readings do not.
    return tuple(
        _UNCHANGED.get(char, syllable)
        for char, syllable in zip(word, hanzi_to_pinyin(word, [word]), strict=True)
    )


def spoken_reading(sentence: Sentence) -> tuple[str, ...]:
    """The spoken reading: 不 and 一 change their tone, and a third tone before a third tone rises.

    The synthesiser applies the latter rule itself, across words and in chains (我想买水: 2 2 2 3), but not
    across a pause; here it makes the transcript match the recording.
    """
    syllables = spoken_input(sentence)
    followings = (_following_tone(syllables, i, sentence) for i in range(len(syllables)))
    return tuple(map(third_tone_sandhi, syllables, followings))


def spoken_input(sentence: Sentence) -> tuple[str, ...]:
    """The syllables for the synthesiser: citation tones except for 不 and 一, whose changes it lacks."""
    hanzi, pinyin = sentence.hanzi, sentence.pinyin
    changed = list(pinyin)
    for i, char in enumerate(hanzi[:-1]):
        following = _following_tone(pinyin, i, sentence)
        if char == "不" and pinyin[i] == "bu4":
            changed[i] = bu_sandhi(following)
        elif char == "一" and pinyin[i] == "yi1":
            changed[i] = yi_sandhi(hanzi, i, following)
    return tuple(changed)


def _following_tone(syllables: Sequence[str], index: int, sentence: Sentence) -> int:
    """The tone of the next syllable; 0 before a pause or the end."""
    end = index + 1 == len(syllables) or index + 1 in sentence.pauses
    return 0 if end else tone_of(syllables[index + 1])
