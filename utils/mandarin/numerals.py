"""Writes numbers in hanzi as they are spoken (120人 → 一百二十人), in all usual ways; reads such hanzi."""

import itertools
import re
from functools import lru_cache

DIGITS = "零一二三四五六七八九"
UNITS = ("", "十", "百", "千")
MYRIADS = ("", "万", "亿", "万亿")
LONGEST_CARDINAL = 16  # digits; longer numbers are read digit by digit
# Numbers with the commas and points between their digits, as a whole: a part of it is never read.
_NUMBERS = re.compile(r"(?<![A-Za-z\d.])(?<!\d,)(\d+(?:[.,]\d+)*)(%)?(?![.,]\d|%?[A-Za-z\d])")
_GROUPED = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")  # with thousands separators
# Read digit by digit: years, codes (they begin with 0), and telephone numbers: at least _CODE_DIGITS digits,
# of which more than _SIGNIFICANT_DIGITS come before the zeros at the end.
_CODE_DIGITS, _SIGNIFICANT_DIGITS = 7, 5
_YEAR = re.compile(r"\s*年")
_LATEST_YEAR = 2100
_RECENT_YEAR = 1900  # 2020年历史最低 is of a year, unless a word for a length precedes: 有2000年历史
_LENGTH = re.compile(r"(?:有|了|约|近|过|达|历时|历经|整)\s*$")
# After a round number of years these words mean a duration: 3000年历史, 1500年前, but 2030年前, 2008年来.
_DURATION = re.compile(r"\s*年(?:的?(?:历史|时间)|之久)")
_SPAN = re.compile(r"\s*年(?:前(?![后夕期出])|来(?![到自华]))")
_BORN = re.compile("[05-9][05]后(?![来面续期的半天])")
_METRE = re.compile(r"\d米$")
MEASURE_WORDS = (
    "个|位|名|只|条|张|件|家|种|块|部|座|支|份|杯|瓶|碗|套|双|对|群|句|首|场|篇|棵|头|匹|根|颗|片|遍|顿|趟|朵|步|回|封|幅"
    "|粒|卷|副|串|株|束|滴|桶|罐|壶|桌|册|圈|台|辆|架|艘|栋|幢|间|层|户|口|套|所|枚|枝|盒|箱|包|袋|组|批|队|排|行|列|成|股"
    "|类|项|段|节|轮|局|盘|届|门|国|地|省|市|县|岸|侧|端|把(?!手)|声(?!道|调)|人(?!转)|倍(?!体)|本(?![线科])|次(?![方元函曲])"
    "|点(?!\\d(?!\\d|分))|天(?!气)|年(?![级龄])|周|岁|晚|星期|小时|分钟|秒|万|亿|千|百|公里|千米|米|厘米|毫米|纳米|英里|海里|寸"
    "|公斤|千克|斤|吨|克|升|毫升|亩|公顷|平方|立方|美元|欧元|英镑|港元|元(?![一二]次|方程|论)|毛|角|分钱"
)
"""Pattern of words before which 2 is 两. 月 日 号 楼 级 线 期 等 count nothing (二月, 二楼)."""
_MEASURE_WORD = re.compile(rf"\s*(?:{MEASURE_WORDS})")
# What stands before 第2个, 第1、2条, 第1-2周, 1/2个, 周2, 高2, 中央2台.
_NOT_A_QUANTITY = re.compile(r"(?:第[\d、,，和至到~—–\s-]*|(?:[/周初高]|星期|礼拜|中央)\s*)$")
# A 2 that may be read as 两: alone, before 百 and 千, and where it is all that stands before 万 or 亿.
_LIANG = re.compile(r"^二$|二(?=[百千])|(?:^|(?<=亿)|(?<=亿零))二(?=[万亿])")
# The unit of the last digit may be left out directly after the next higher unit: 一百五(十), 一万二(千).
_LAST_UNIT = re.compile("(?<=[百千万])([一二三四五六七八九])[十百千]$")
_SPELLED_FROM = 100  # smaller numbers are not read digit by digit
DIGIT_VALUES = {**{word: value for value, word in enumerate(DIGITS)}, "〇": 0, "幺": 1, "两": 2}
_UNIT_VALUES = {"亿": 10**8, "万": 10**4, "千": 1000, "百": 100, "十": 10}
_CIRCLES = re.compile("(?<=[一二三四五六七八九])[〇○◯]+|〇|[○◯](?=[一二三四五六七八九]年)")
_VARIANTS = str.maketrans("两", "二", "零〇")  # what varies between the words of the same number


def numbers_to_hanzi(text: str) -> str:
    """Write the numbers in a text in hanzi: 2024年 → 二零二四年, 120人 → 一百二十人, 3.5% → 百分之三点五.

    Where Mandarin has several ways (幺 for 一, 2,000 as 两千), one of them is chosen. A comma that separates
    no thousands separates two numbers (第1,2名). Numbers next to Latin letters (MP3, 1.5kg), and those with
    several points (1.2.3), are unchanged.
    """
    return _NUMBERS.sub(lambda match: _read(match, text[: match.start()], text[match.end() :]), text)


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


def _read(match: re.Match[str], before: str, rest: str) -> str:
    figures, percent = match.groups()
    if figures == "2" and not percent and _MEASURE_WORD.match(rest) and not _NOT_A_QUANTITY.search(before):
        return "两"
    numbers = [figures] if _GROUPED.fullmatch(figures) else figures.split(",")
    if any(number.count(".") > 1 for number in numbers):
        return match[0]
    words = [_read_number(number, before, rest) for number in numbers]
    if percent:
        words[-1] = f"百分之{words[-1]}"
    return ",".join(words)


def _read_number(number: str, before: str, rest: str) -> str:
    """The words of one number; ``rest`` is the text after it, or after the last one of a list."""
    grouped, _, fraction = number.partition(".")
    whole = grouped.replace(",", "")
    is_spelled = _is_year(whole, before, rest) or is_code(whole) or _is_short(whole, before, rest)
    by_digits = whole == grouped and not fraction and is_spelled
    words = spell_digits(whole) if by_digits or len(whole) > LONGEST_CARDINAL else cardinal(int(whole))
    return f"{words}点{spell_digits(fraction)}" if fraction else words


def _is_year(digits: str, before: str, rest: str) -> bool:
    """Whether digits are the number of a year, not a number of years."""
    if len(digits) != 4 or int(digits) > _LATEST_YEAR or not _YEAR.match(rest):
        return False
    if digits.endswith("00") and _SPAN.match(rest):
        return False
    duration = _DURATION.match(rest) if digits.endswith("0") else None
    if not duration:
        return True
    is_recent = int(digits) >= _RECENT_YEAR and "之久" not in duration[0]
    return is_recent and not _LENGTH.search(before)


def _is_short(digits: str, before: str, rest: str) -> bool:
    """Whether two digits are a year of birth (90后) or centimetres after a metre (1米75)."""
    if len(digits) != 2:
        return False
    return bool(_BORN.match(digits + rest) or _METRE.search(before))


def is_code(digits: str) -> bool:
    """Whether digits are not a quantity: codes such as 007, telephone numbers, and very long numbers."""
    long = len(digits) >= _CODE_DIGITS and len(digits.rstrip("0")) > _SIGNIFICANT_DIGITS
    return (len(digits) > 1 and digits[0] == "0") or long or len(digits) > LONGEST_CARDINAL


def spell_digits(digits: str) -> str:
    """Read a number digit by digit: 007 → 零零七."""
    return "".join(DIGITS[int(digit)] for digit in digits)
