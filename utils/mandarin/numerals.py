"""Writes whole numbers in hanzi (120 → 一百二十), in all usual ways; reads such hanzi."""

import itertools
import re
from functools import lru_cache

DIGITS = "零一二三四五六七八九"
UNITS = ("", "十", "百", "千")
MYRIADS = ("", "万", "亿", "万亿")
LONGEST_CARDINAL = 16  # digits; longer numbers are read digit by digit
# Read digit by digit: codes (they begin with 0), and telephone numbers: at least _CODE_DIGITS digits, of
# which more than _SIGNIFICANT_DIGITS come before the zeros at the end.
_CODE_DIGITS, _SIGNIFICANT_DIGITS = 7, 5
MEASURE_WORDS = (
    "个|位|名|只|条|张|件|家|种|块|部|座|支|份|杯|瓶|碗|套|双|对|群|句|首|场|篇|棵|头|匹|根|颗|片|遍|顿|趟|朵|步|回|封|幅"
    "|粒|卷|副|串|株|束|滴|桶|罐|壶|桌|册|圈|台|辆|架|艘|栋|幢|间|层|户|口|套|所|枚|枝|盒|箱|包|袋|组|批|队|排|行|列|成|股"
    "|类|项|段|节|轮|局|盘|届|门|国|地|省|市|县|岸|侧|端|把(?!手)|声(?!道|调)|人(?!转)|倍(?!体)|本(?![线科])|次(?![方元函曲])"
    "|点(?!\\d(?!\\d|分))|天(?!气)|年(?![级龄])|周|岁|晚|星期|小时|分钟|秒|万|亿|千|百|公里|千米|米|厘米|毫米|纳米|英里|海里|寸"
    "|公斤|千克|斤|吨|克|升|毫升|亩|公顷|平方|立方|美元|欧元|英镑|港元|元(?![一二]次|方程|论)|毛|角|分钱"
)
"""Pattern of words before which 2 is 两. 月 日 号 楼 级 线 期 等 count nothing (二月, 二楼)."""
# A 2 that may be read as 两: alone, before 百 and 千, and where it is all that stands before 万 or 亿.
_LIANG = re.compile(r"^二$|二(?=[百千])|(?:^|(?<=亿)|(?<=亿零))二(?=[万亿])")
# The unit of the last digit may be left out directly after the next higher unit: 一百五(十), 一万二(千).
_LAST_UNIT = re.compile("(?<=[百千万])([一二三四五六七八九])[十百千]$")
_SPELLED_FROM = 100  # smaller numbers are not read digit by digit
DIGIT_VALUES = {**{word: value for value, word in enumerate(DIGITS)}, "〇": 0, "幺": 1, "两": 2}
_UNIT_VALUES = {"亿": 10**8, "万": 10**4, "千": 1000, "百": 100, "十": 10}
_CIRCLES = re.compile("(?<=[一二三四五六七八九])[〇○◯]+|〇|[○◯](?=[一二三四五六七八九]年)")
_VARIANTS = str.maketrans("两", "二", "零〇")  # what varies between the words of the same number


def with_zeros(text: str) -> str:
    """A text with 零 for the circles in numbers: 二○○八 and 二〇〇八 → 二零零八."""
    return _CIRCLES.sub(lambda found: DIGITS[0] * len(found[0]), text)


def cardinal(number: int) -> str:
    """A whole number below 10¹⁶: 105 → 一百零五, 10 → 十, 20000 → 二万."""
    if number == 0:
        return DIGITS[0]
    groups = []
    while number:
        number, group = divmod(number, 10_000)
        groups.append(group)
    words = ""
    for power in reversed(range(len(groups))):
        group = groups[power]
        if not group:
            continue
        gap = bool(words) and (group < 1000 or (power + 1 < len(groups) and not groups[power + 1]))
        words += (DIGITS[0] if gap else "") + _below_myriad(group) + MYRIADS[power]
    return words[1:] if words.startswith("一十") else words


def number_readings(number: int) -> tuple[str, ...]:
    """All usual readings of a whole number below 10¹⁶; the first one is :func:`cardinal`.

    >>> number_readings(150)
    ('一百五十', '一百五', '一五零', '幺五零')
    >>> number_readings(2200)[:3]
    ('二千二百', '二千两百', '两千二百')
    """
    usual = cardinal(number)
    positions = [match.start() for match in _LIANG.finditer(usual)]
    readings = []
    for digits in itertools.product("二两", repeat=len(positions)):
        characters = list(usual)
        for position, digit in zip(positions, digits, strict=True):
            characters[position] = digit
        readings.append("".join(characters))
    readings += [_LAST_UNIT.sub(r"\1", reading) for reading in readings]
    readings += [f"一{reading}" for reading in readings if reading[0] == UNITS[1]]
    if number >= _SPELLED_FROM:
        spelled = spell_digits(str(number))
        readings += [spelled, spelled.replace("一", "幺")]
    return tuple(dict.fromkeys(readings))


@lru_cache(maxsize=10_000)
def whole_number(words: str) -> int | None:
    """The number that hanzi stand for; None if they are not the usual words of one (三五百, 百万).

    >>> whole_number("一百零五"), whole_number("一百五"), whole_number("两千万"), whole_number("七八十")
    (105, 150, 20000000, None)
    """
    try:
        number = _value(words)
    except KeyError:
        return None
    readings = number_readings(number) if number < 10**LONGEST_CARDINAL else ()
    usual = {reading.translate(_VARIANTS) for reading in readings}
    return number if words and words.translate(_VARIANTS) in usual else None


def _value(words: str) -> int:
    """The value of words, usual or not; a digit at the end counts tenths of the unit before it (一百五)."""
    for name, unit in _UNIT_VALUES.items():
        before, found, rest = words.rpartition(name)
        if found:
            tenths = unit // 10 if rest in DIGIT_VALUES and unit > _UNIT_VALUES["十"] else 1
            return _value(before or "一") * unit + _value(rest) * tenths
    return DIGIT_VALUES[words.lstrip("零〇") or DIGITS[0]]


def _below_myriad(number: int) -> str:
    words, gap = "", False
    for power in (3, 2, 1, 0):
        digit = number // 10**power % 10
        if not digit:
            gap = bool(words)
            continue
        words += (DIGITS[0] if gap else "") + DIGITS[digit] + UNITS[power]
        gap = False
    return words


def is_code(digits: str) -> bool:
    """Whether digits are not a quantity: codes such as 007, telephone numbers, and very long numbers."""
    long = len(digits) >= _CODE_DIGITS and len(digits.rstrip("0")) > _SIGNIFICANT_DIGITS
    return (len(digits) > 1 and digits[0] == "0") or long or len(digits) > LONGEST_CARDINAL


def spell_digits(digits: str) -> str:
    """Read a number digit by digit: 007 → 零零七."""
    return "".join(DIGITS[int(digit)] for digit in digits)
