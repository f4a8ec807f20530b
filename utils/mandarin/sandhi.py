"""Lists the pronunciations that each syllable of a sentence may have in speech: tone sandhi, neutral tones.

Corpora and dictionaries give citation tones. In speech, tones depend on the next syllable, and some syllables
lose their tone (neutral):

- a third tone before a third tone rises: 你好 ni3 hao3 → ni2 hao3; in a chain all but the last may rise;
- 不 is bu2 before a fourth tone, and may be neutral between two equal verbs (是不是);
- 一 is yi2 before a fourth tone and yi4 before others, but not in ordinals, dates and numbers (第一天, 一月);
- the second syllable of some words and doubled kinship terms, and directional complements, may be neutral:
  朋友 peng2 you3 or you5, 妈妈 ma1 ma5 or ma1, 起来 lai2 or lai5;
- 地 得 了 的 are neutral as particles; in slow speech or a dictionary they may have the full reading.
"""

import re
from collections.abc import Sequence
from functools import cache

from utils.mandarin.pinyin import hanzi_to_pinyin

# Here 一 keeps its first tone: digits, ordinals, dates, and the end of a word.
_YI_KEPT = re.compile(
    "一(?=$|[月号零一二三四五六七八九十]|年级|等奖|级|楼)"
    "|(?<=[第初逐统唯惟单专划])一|(?<=[高大])一(?=学|新|年|班|上|下学|的)"
    "|(?<=[期拜])一(?!个|次|开|结|到|直|定)|(?<=周)(?<!一周)一(?![次个回趟场])|(?<=[月年])一(?=日)"
    "|(?<=万)一(?![百千万亿两])|(?<=[零一二三四五六七八九十])一(?![百千万亿])"
    "|(?<=[零一二三四五六七八九十百千万亿]点)一(?!刻|到|过)|(?<=之)(?<!总之)一"
)
# The full readings of particles, which some word lists give.
_FULL = {("地", "de5"): "di4", ("得", "de5"): "de2", ("的", "de5"): "di4", ("们", "men5"): "men2"}
# Words whose second syllable is neutral for many speakers and full for others.
_NEUTRAL_SECOND = """
    朋友 漂亮 明白 清楚 先生 学生 关系 知道 时候 地方 事情 意思 东西 消息 衣服 认识 休息 告诉
    喜欢 便宜 客气 热闹 厉害 舒服 麻烦 商量 打听 打算 名字 月亮 太阳 早晨 故事 新闻 部分 力量
    聪明 干净 生意 工夫 师傅 丈夫 太太 大夫 头发 眼睛 耳朵 鼻子 嘴巴 脑袋 肩膀 胳膊 窗户 钥匙
    葡萄 玻璃 豆腐 点心 馒头 石头 木头 骨头 里头 外头 前头 后头 晚上 早上 地上 身上 路上 世上
    家里 手里 心里 城里 那里 这里 哪里 上面 下面 里面 外面 前面 后面 上边 下边 那边 这边 出去
    进去 回去 过去 下去 上去 出来 进来 回来 过来 下来 上来 起来 答应 照顾 价钱 本事 脾气 道理
    规矩 比方 妈妈 爸爸 爷爷 奶奶 哥哥 姐姐 弟弟 妹妹 叔叔 舅舅 姑姑 婆婆 公公 毛病
    谢谢 星星 宝宝 娃娃 看看 试试 味道 知识 精神 姑娘 合同 护士 行李 力气 粮食 笑话 主意 收拾
    招呼 亲戚 和尚 狐狸 凉快 木匠 牡丹 玫瑰 骆驼 风筝 媳妇 庄稼"""
# Their full reading where it differs from the reading of the second character alone.
_FULL_SECOND = {"头发": "fa4", "商量": "liang2", "部分": "fen4", "答应": "ying4"}


def spoken_variants(hanzi: str, pinyin: Sequence[str]) -> list[tuple[str, ...]]:
    """For each syllable the given reading, then the other possible pronunciations.

    >>> spoken_variants("不好看", ["bu4", "hao3", "kan4"])
    [('bu4',), ('hao3',), ('kan4',)]
    >>> spoken_variants("我很好", ["wo3", "hen3", "hao3"])
    [('wo3', 'wo2'), ('hen3', 'hen2'), ('hao3',)]

    Args:
        hanzi: the sentence.
        pinyin: canonical syllables, one per hanzi; 一 and 不 with citation or spoken tones.

    Raises:
        ValueError: the number of syllables differs from the number of hanzi.
    """
    variants = []
    for index, (character, syllable) in enumerate(zip(hanzi, pinyin, strict=True)):
        next_tone = int(pinyin[index + 1][-1]) if index + 1 < len(pinyin) else 0
        between_equals = 0 < index < len(hanzi) - 1 and hanzi[index - 1] == hanzi[index + 1]
        if character == "不" and syllable[:-1] == "bu":
            others = [bu_sandhi(next_tone), "bu4"] + ["bu5"] * between_equals
        elif character == "一" and syllable[:-1] == "yi":
            others = [yi_sandhi(hanzi, index, next_tone), "yi1"] + ["yi5"] * between_equals
        else:
            others = [*_full_or_neutral(hanzi, index, syllable), third_tone_sandhi(syllable, next_tone)]
        variants.append(tuple(dict.fromkeys([syllable, *others])))
    return variants


def third_tone_sandhi(syllable: str, next_tone: int) -> str:
    """A syllable before a tone (0 is a pause): a third tone before a third tone becomes a second tone."""
    return f"{syllable[:-1]}2" if syllable[-1] == "3" and next_tone == 3 else syllable


def bu_sandhi(next_tone: int) -> str:
    """The reading of 不 before a tone; 0 is a pause."""
    return "bu2" if next_tone == 4 else "bu4"


def yi_sandhi(hanzi: Sequence[str], index: int, next_tone: int) -> str:
    """The reading of the 一 at ``index`` before a tone; 0 is a pause."""
    if _YI_KEPT.match("".join(hanzi), index):
        return "yi1"
    return {0: "yi1", 4: "yi2", 5: "yi2"}.get(next_tone, "yi4")


def _full_or_neutral(hanzi: str, index: int, syllable: str) -> list[str]:
    """The full reading of a neutral syllable, or the neutral reading of a full one, where both are usual."""
    if full := _FULL.get((hanzi[index], syllable)):
        return [full]
    word = hanzi[max(0, index - 1) : index + 1]
    if word not in _full_readings():
        return []
    return [_full_readings()[word] if syllable[-1] == "5" else f"{syllable[:-1]}5"]


@cache
def _full_readings() -> dict[str, str]:
    """Words of ``_NEUTRAL_SECOND`` to the full reading of their second syllable."""
    return {word: _FULL_SECOND.get(word) or hanzi_to_pinyin(word[1])[0] for word in _NEUTRAL_SECOND.split()}
