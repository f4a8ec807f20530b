"""Corrects the readings of polyphones (多音字) in pypinyin's reading of a sentence, by rules on the context.

pypinyin cuts a text into the longest known phrases from the left. A phrase may therefore cross a word
boundary (维护|发展 is read as 维 护发 展), and a character outside all phrases gets its most frequent reading
(慢慢地 di4). The rules are regular expressions for the text before and after a character, in
``polyphones.tsv``. Longer phrases seldom cross a boundary, so the rules leave them alone.
"""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

RULES_PATH = Path(__file__).with_name("polyphones.tsv")
_ANY = "-"
_REACH = 12  # characters before the polyphone that a rule sees

_MISREAD = (
    "不得了 不记得 信得过 塞纳河 多劳多得 憋得慌 打得火热 比得上 犯得上 看得上 都柏林 "
    "昌都县 想得到 没有空 这么着 少不了 目的地 目的性 灾难深重 等差级数 差分放大器 "
    "分散染料 豆角儿 口角炎 深仇宿怨 闷声不吭 好恶不同 铺摊子 少白头 谋臣猛将 厚德载福 "
    "数以万计 解铃还须系铃人 万载千秋 第一名 一年级 一等奖 开花结果 果实累累"
)
MISREAD_PHRASES = frozenset(_MISREAD.split())
"""Known phrases of more than two hanzi in which the rules apply.

pypinyin reads them wrongly (不得了 le5), or the last hanzi often begins another word (没有|空间).
"""
# Readings as surnames: after 姓, and before a title unless the character ends a known word (调查某人).
_SURNAME_READINGS = (
    "单:shan4 解:xie4 仇:qiu2 盖:ge3 查:zha1 翟:zhai2 乐:yue4 员:yun4 繁:po2 葛:ge3 曾:zeng1 薄:bo2 "
    "朴:piao2 燕:yan1 卜:bu3 尉:wei4 祭:zhai4 缪:miao4 冼:xian3"
)
_SURNAMES = dict(pair.split(":") for pair in _SURNAME_READINGS.split())
_FAMILY_NAME = re.compile("姓$")
_TITLE = re.compile("先生|女士|小姐|太太|老师|教授|大夫|师傅|同学|院长|校长|局长|经理|书记|主任|某|氏")
# Characters that often begin or end a word beside such a phrase (我还|口渴, 更|张扬, 转|门诊).
_OFTEN_ALONE = frozenset("还更难转没")


class Rule(NamedTuple):
    """A reading, and patterns of the text before and after the character; None matches anything."""

    reading: str
    before: re.Pattern[str] | None
    after: re.Pattern[str] | None

    def matches(self, text: str, index: int) -> bool:
        """Whether the text before and after the character at ``index`` matches the rule."""
        if self.after and not self.after.match(text, index + 1):
            return False
        return not self.before or self.before.search(text, max(0, index - _REACH), index) is not None

    @property
    def has_pattern(self) -> bool:
        """Whether the rule looks at the text beside the character."""
        return self.before is not None or self.after is not None


@cache
def read_rules() -> dict[str, tuple[Rule, ...]]:
    """The rules for each character; the first that matches applies."""
    rules: dict[str, list[Rule]] = {}
    for line in RULES_PATH.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            character, reading, before, after = line.split("\t")
            patterns = [None if part == _ANY else re.compile(part) for part in (before, after)]
            rules.setdefault(character, []).append(Rule(reading, *patterns))
    return {character: tuple(found) for character, found in rules.items()}


def correct_polyphones(parts: Sequence[str], syllables: Sequence[str]) -> list[str]:
    """The reading of a text, corrected by the rules.

    A known phrase of two hanzi keeps its reading where only a rule without patterns matches (种花 zhong4),
    apart from a few characters that are often words by themselves.
    A longer one keeps it whatever matches (有朝一日 zhao1), with few exceptions.

    Args:
        parts: the text cut into known phrases and other characters, by ``hanzi_readings.known_parts``.
        syllables: canonical, one per hanzi; unchanged where no rule matches.
    """
    text = "".join(parts)
    corrected: list[str] = []
    for part in parts:
        start = len(corrected)
        is_misread = part in MISREAD_PHRASES
        keeps_reading = len(part) > 2 and not is_misread
        for index, syllable in enumerate(syllables[start : start + len(part)], start):
            rule = None if keeps_reading else matching_rule(text, index)
            any_rule = len(part) == 1 or is_misread or text[index] in _OFTEN_ALONE
            if rule is not None and (any_rule or rule.has_pattern):
                syllable = rule.reading
            corrected.append(syllable)
    return corrected


def matching_rule(text: str, index: int) -> Rule | None:
    """The first rule that matches the character at ``index``; None if none does or it is alone."""
    if len(text) == 1:  # a single character has no context
        return None
    surname = _SURNAMES.get(text[index])
    if surname and text[:index].endswith("姓"):
        return Rule(surname, _FAMILY_NAME, None)
    if surname and _TITLE.match(text, index + 1):
        return Rule(surname, None, None)
    return next((rule for rule in read_rules().get(text[index], ()) if rule.matches(text, index)), None)
