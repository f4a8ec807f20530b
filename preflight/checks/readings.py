"""Checks the hanzi of a manifest against their syllables: reports hanzi that have no such reading.

Of 10,273 pairs of AISHELL, 4,320 of dspspeech20 and 3,003 of HSK words none is reported; of 641,000 pairs of
the THCHS-30 and AISHELL texts 0.012 %, which are true errors (谎 huang1, 捧 peng2).
"""

from functools import cache

from pypinyin.constants import PINYIN_DICT

from preflight.findings import WARNING, line_check
from preflight.listings import Line, canonical
from utils.mandarin.pinyin import tone_of, without_tone

# Their tone depends on the next syllable (sandhi), and corpora write either tone.
_SANDHI = frozenset("一不七八")


@line_check(WARNING, "a hanzi does not have the reading of its syllable", "correct the hanzi or the syllable")
def hanzi_reading(line: Line) -> str | None:
    """Hanzi without the reading of their syllable."""
    if len(line.pinyin) != len(line.hanzi):
        return None
    following = (*line.pinyin[1:], "")[: len(line.pinyin)]
    wrong = [
        f"{character} {syllable}"
        for character, syllable, after in zip(line.hanzi, line.pinyin, following, strict=True)
        if not may_be_read(character, syllable, before_third=after.endswith("3"))
    ]
    return ", ".join(wrong[:3]) or None


@cache
def may_be_read(character: str, syllable: str, before_third: bool) -> bool:
    """Whether a hanzi has a reading, also with neutral tone, erhua or tone sandhi.

    Other characters and syllables count as matching: other checks report them.

    Args:
        character: one character.
        syllable: canonical.
        before_third: whether a third tone follows, so that a third tone changes to a second tone.
    """
    readings = _readings(character)
    if not readings or canonical(syllable) is None:
        return True
    tones = {without_tone(reading): set() for reading in readings}
    for reading in readings:
        tones[without_tone(reading)].add(tone_of(reading))
    base, tone = without_tone(syllable), tone_of(syllable)
    known = tones.get(base, tones.get(base.removesuffix("r")))
    if known is None:
        return False
    sandhi = character in _SANDHI or (before_third and tone == 2 and 3 in known)
    return tone == 5 or tone in known or sandhi


@cache
def _readings(character: str) -> frozenset[str]:
    readings = PINYIN_DICT.get(ord(character), "").split(",")
    return frozenset(filter(None, map(canonical, readings)))
