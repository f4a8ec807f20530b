"""Hanzi and their citation reading in, the other ways in which each syllable may be said out.

Corpora and dictionaries cite; people say tones as their neighbours make them, and weaken syllables:

- a third tone before a third tone rises: 你好 ni3 hao3 → ni2 hao3; in a chain each but the last may;
- 不 before a fourth tone is bu2, and between two equal verbs weak (是不是);
- 一 is yi2 before a fourth tone, yi4 before the others, not in ordinals, dates and numbers (第一天, 一月);
- the second half of some words and of doubled kin terms, and complements of direction, are weak or not: 朋友
  peng2 you3 or you5, 妈妈 ma1 ma5 or ma1, 起来 lai2 or lai5;
- 地 得 了 的 are weak as particles; who reads slowly, or a dictionary, may give them the full reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from utils.mandarin.pinyin import hanzi_to_pinyin

# 一 keeps its first tone at the end of a number, in ordinals and in dates.
_YI_KEPT_AFTER = frozenset("零一二三四五六七八九十百千万点第期之")
_YI_KEPT_BEFORE = frozenset("月号日年零一二三四五六七八九十")
# The full readings of particles, as citation lists often have them.
_FULL = {("地", "de5"): "di4", ("得", "de5"): "de2", ("的", "de5"): "di4", ("们", "men5"): "men2"}
# Words whose second syllable is weak for many speakers and full for others.
_WEAK_SECOND = """
    朋友 漂亮 明白 清楚 先生 学生 关系 知道 时候 地方 事情 意思 东西 消息 衣服 认识 休息 告诉
    喜欢 便宜 客气 热闹 厉害 舒服 麻烦 商量 打听 打算 名字 月亮 太阳 早晨 故事 新闻 部分 力量
    聪明 干净 生意 工夫 师傅 丈夫 太太 大夫 头发 眼睛 耳朵 鼻子 嘴巴 脑袋 肩膀 胳膊 窗户 钥匙
    葡萄 玻璃 豆腐 点心 馒头 石头 木头 骨头 里头 外头 前头 后头 晚上 早上 地上 身上 路上 世上
    家里 手里 心里 城里 那里 这里 哪里 上面 下面 里面 外面 前面 后面 上边 下边 那边 这边 出去
    进去 回去 过去 下去 上去 出来 进来 回来 过来 下来 上来 起来 答应 照顾 价钱 本事 脾气 道理
    规矩 比方 妈妈 爸爸 爷爷 奶奶 哥哥 姐姐 弟弟 妹妹 叔叔 舅舅 姑姑 婆婆 公公 毛病"""
# Their full reading where it is another than that of the second character alone.
_FULL_SECOND = {"头发": "fa4", "商量": "liang2", "部分": "fen4", "答应": "ying4"}


def spoken_variants(hanzi: str, pinyin: Sequence[str]) -> list[tuple[str, ...]]:
    """For each position the given syllable, then the others that may be heard in its place.

    >>> spoken_variants("不好看", ["bu4", "hao3", "kan4"])
    [('bu4',), ('hao3',), ('kan4',)]
    >>> spoken_variants("我很好", ["wo3", "hen3", "hao3"])
    [('wo3', 'wo2'), ('hen3', 'hen2'), ('hao3',)]

    Args:
        hanzi: the sentence.
        pinyin: canonical syllables, one a hanzi, cited or with the tones of 一 and 不 as they are said.

    Raises:
        ValueError: there are not as many syllables as hanzi.
    """
    found = []
    for place, (character, syllable) in enumerate(zip(hanzi, pinyin, strict=True)):
        following = int(pinyin[place + 1][-1]) if place + 1 < len(pinyin) else 0
        if character == "不" and syllable[:-1] == "bu":
            others = _bu(hanzi, place, following)
        elif character == "一" and syllable[:-1] == "yi":
            others = _yi(hanzi, place, following)
        else:
            others = [*_weakened(hanzi, place, syllable), said_third(syllable, following)]
        found.append(tuple(dict.fromkeys([syllable, *others])))
    return found


def said_third(syllable: str, following: int) -> str:
    """A syllable before one of this tone (0 is a pause): a third tone before a third tone rises."""
    return f"{syllable[:-1]}2" if syllable[-1] == "3" and following == 3 else syllable


def said_bu(following: int) -> str:
    """不 before a syllable of this tone; 0 is a pause."""
    return "bu2" if following == 4 else "bu4"


def said_yi(hanzi: Sequence[str], place: int, following: int) -> str:
    """一 at this place, before a syllable of this tone; 0 is a pause."""
    kept = place and hanzi[place - 1] in _YI_KEPT_AFTER
    if kept or place + 1 == len(hanzi) or hanzi[place + 1] in _YI_KEPT_BEFORE:
        return "yi1"
    return {0: "yi1", 4: "yi2", 5: "yi2"}.get(following, "yi4")


def _between_equals(hanzi: str, place: int) -> bool:
    return 0 < place < len(hanzi) - 1 and hanzi[place - 1] == hanzi[place + 1]


def _bu(hanzi: str, place: int, following: int) -> list[str]:
    return [said_bu(following), "bu4"] + ["bu5"] * _between_equals(hanzi, place)


def _yi(hanzi: str, place: int, following: int) -> list[str]:
    return [said_yi(hanzi, place, following), "yi1"] + ["yi5"] * _between_equals(hanzi, place)


def _weakened(hanzi: str, place: int, syllable: str) -> list[str]:
    """Full readings of a weak syllable, and the other way round."""
    if full := _FULL.get((hanzi[place], syllable)):
        return [full]
    word = hanzi[max(0, place - 1) : place + 1]
    if word not in _full_readings():
        return []
    return [_full_readings()[word] if syllable[-1] == "5" else f"{syllable[:-1]}5"]


@cache
def _full_readings() -> dict[str, str]:
    """Words of ``_WEAK_SECOND`` to the full reading of their second syllable."""
    return {word: _FULL_SECOND.get(word) or hanzi_to_pinyin(word[1])[0] for word in _WEAK_SECOND.split()}
