"""Writes the numbers in recognised hanzi as digits: 一百二十三块 → 123块, for a text or a whole segment.

A number becomes digits if it is a quantity, a date, a time of day, a ratio, a year or a code:

- whole numbers from 10 (一万两千三百人 → 12300人; from a million with 万 and 亿: 315万), decimals, fractions,
  percentages. Those below 100 and round ones need a measure word or the end of the clause behind them;
- dates with a day (八月八日), years, times of day with minutes (八点半 → 8:30), 3:2, 1+2=3, 10~20;
- codes: four digits or more, or three with 零 or 幺.

It stays in hanzi: a whole number below 10 (两个人, 三月); an approximation, which has two digits in a row
(三五个, 七八十), or 几 数 多 来 余 左右 beside it; a word (十分, 星期三, 九一八); an idiom of the phrase
dictionary (一目十行); a lunar day (八月十五); what may be read in two ways (五点五分). Units stay in hanzi
(十公里 → 10公里).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

from utils.hypotheses.recognition import Ending, Recognition
from utils.mandarin.hanzi_readings import phrases
from utils.mandarin.numerals import DIGIT_VALUES, MEASURE_WORDS, whole_number, with_zeros

_APPROXIMATE_PAIR = re.compile("一二|[二两]三|三四|四五|五六|六七|七八|八九|三五")
_DIGIT = "[零一二三四五六七八九幺]"  # 两 is in no code and before no decimal point
_WORD = "[零一二两三四五六七八九幺十百千万亿兆]"
_NUMBER = f"{_WORD}+"
_RUN = re.compile(f"(?:(?<!胜)负的?)?{_NUMBER}")
_CLAUSE_END = r"(?=$|[^\w]|[A-Za-z])"
_COUNTED = re.compile(
    rf"{MEASURE_WORDS}|{_CLAUSE_END}|[日号楼级线路度后前角强班]|月(?!饼|光|亮)|分(?!之|满意|感谢|高兴)"
    "|世纪|以[上下内外]|里[地路]|平方|摄氏|毫|千[克瓦卡]"
)
_SPELLED_AFTER = re.compile("[路号室班次房年]")  # 三一五路 is a code, 三一五 is a day
_WEEKDAY_BEFORE = re.compile("(?:星期|礼拜|(?<![一两几每])周)$")  # 周五十点: no 五十
# Here 点 counts (这三点十分重要, 有一点十分奇怪), or is the hour (下午三点一个人).
_COUNTED_POINTS = re.compile("(?:[这那哪几第前下]|(?<!午)后|[下方里后]面)$")
_TIME_OF_DAY = re.compile("(?:[上下中正]午|早[上晨]?|[今明昨当傍]?晚上?|凌晨|夜里|半夜|清晨)$")
# A lunar day (八月十五, 初十, 大年三十) is no quantity either.
_APPROXIMATE_BEFORE = re.compile("[几数儿初月双]$|(?<![去今明前后每半])年$")
_APPROXIMATE_AFTER = re.compile("[几多余]|来(?![了到自看])|出头|开外|上下|左右|把(?=[个块年岁])")
_LARGE = 1_000_000  # a number from here keeps its 万
_OPERATORS = {"加": "+", "减": "-", "乘": "×", "乘以": "×", "除以": "÷", "等于": "="}
_TERMS = f"{_NUMBER}|{'|'.join(sorted(_OPERATORS, key=len, reverse=True))}|负"
# Expressions with a measure word after the number, or an approximation, that the dictionary of phrases lacks.
_FIXED = re.compile(
    "五十步笑百步|十年(?:寒窗|树木|磨|怕|生死|如一日)|寒窗十年|三十年河.|一千零一夜|十万个为什么|弱水三千|[两二]万五千里长征"
    "|五代十国|十月(?:革命|怀胎)|上下五千年|双十|十一国庆|合十|一[赔罚当抵]十|十成九|七零八|七老八十|二百五(?!十)|十二万分|一点一滴"
    f"|十[天年]半|{_NUMBER}届.中全会|{_NUMBER}个(?:不|放心|小心|指头)"
    rf"|(?P<many>{_NUMBER})(?P<unit>(?!{_WORD}|点)\w)(?P<fewer>{_NUMBER})(?P=unit)"
)
_PLAIN_PHRASE = re.compile(f"(?:{_WORD}|[个月点钟度分之])+")  # in the dictionary, but no idiom
_PHRASE_LENGTHS = range(3, 12)
Match = re.Match[str]


def with_digits(segment: Recognition | Ending) -> Recognition | Ending:
    """The segment with numbers as digits; the text of a number belongs to its first syllable."""
    if isinstance(segment, Ending) or not segment.best.hanzi:
        return segment
    texts = segment.syllable_texts()
    hanzi = "".join(texts)
    syllables = [index for index, text in enumerate(texts) for _ in text]  # of each character
    written: dict[int, str] = {}
    for start, end, digits in _numbers(hanzi):
        written |= {start: digits, **dict.fromkeys(range(start + 1, end), "")}
    labels = [""] * len(texts)
    for index, syllable in enumerate(syllables):
        labels[syllable] += written.get(index, hanzi[index])
    return replace(segment, labels=tuple(labels)) if written else segment


def numbers_as_digits(text: str) -> str:
    """The text with numbers as digits."""
    for start, end, digits in reversed(list(_numbers(text))):
        text = text[:start] + digits + text[end:]
    return text


def _numbers(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and digits of each number that becomes digits."""
    text, position = with_zeros(text), 0
    while run := _RUN.search(text, position):
        start, position = run.start(), run.end()
        if _WEEKDAY_BEFORE.search(text, 0, start):
            position = start + 1
            continue
        for pattern, write in _RULES:
            found = pattern.match(text, start)
            digits = write(found) if found else None
            if found and digits and not _is_fixed(text, *found.span()):
                yield *found.span(), digits
                position = found.end()
                break


def _is_fixed(text: str, start: int, end: int) -> bool:
    """Whether a number overlaps an idiom or another fixed expression."""
    for found in _FIXED.finditer(text):
        is_range = found["many"] is None or _is_descending(found["many"], found["fewer"])
        if is_range and found.start() < end and start < found.end():
            return True
    parts = (
        text[first : first + length]
        for length in _PHRASE_LENGTHS
        for first in range(max(0, start - length + 1), min(end, len(text) - length + 1))
    )
    return any(part in phrases() and not _PLAIN_PHRASE.fullmatch(part) for part in parts)


def _is_descending(first: str, second: str) -> bool:
    """Whether two numbers make a range such as 十天八天."""
    lower, higher = whole_number(first), whole_number(second)
    return lower is None or higher is None or lower > higher


def _context(found: Match) -> tuple[str, str]:
    return found.string[: found.start()], found.string[found.end() :]


def _is_approximate(found: Match) -> bool:
    before, after = _context(found)
    return bool(_APPROXIMATE_AFTER.match(after) or re.search("[几数儿]$", before))


def _written(words: str) -> str | None:
    """A whole number in digits, large ones with 万, 亿 and 兆; None if it is none."""
    head, found, rest = words.partition("兆")
    if found:
        high, low = _written(head), _written(rest) if rest else ""
        return None if None in (high, low) else f"{high}兆{low}"
    number = whole_number(words)
    return None if number is None else _grouped(number)


def _grouped(number: int) -> str:
    for unit, name, least in ((10**8, "亿", 10**8), (10**4, "万", _LARGE)):
        if number >= least:
            large, rest = divmod(number, unit)
            return f"{large}{name}{_grouped(rest) if rest else ''}"
    return str(number)


def _spelled(words: str) -> str:
    return "".join(str(DIGIT_VALUES[word]) for word in words)


def _percentage(found: Match) -> str | None:
    if _is_approximate(found):
        return None
    sign = "-" if found["minus"] else ""
    whole, fraction, high = (found[name] for name in ("whole", "fraction", "high"))
    low, high = ("100" if whole == "百" else _written(whole)), high and _written(high)
    if not low or (found["high"] and not high):
        return None
    decimals = f".{_spelled(fraction)}" if fraction else ""
    return f"{sign}{low}{decimals}{f'~{high}' if high else ''}%"


def _fraction(found: Match) -> str | None:
    whole, part = _written(found[1]), _written(found[2])
    return f"{part}/{whole}" if whole and part else None


def _date(found: Match) -> str | None:
    year, month, day, name = found.groups()
    month_number, day_number = whole_number(month), whole_number(day or "一")
    spelled = re.fullmatch(f"{_DIGIT}{{2,4}}", year or "")
    year_number = _spelled(year) if spelled else year and _written(year)
    if not month_number or not day_number or month_number > 12 or day_number > 31:
        return None
    if not (len(year_number or "") > 1 if year else name):
        return None
    return f"{f'{year_number}年' if year else ''}{month_number}月{f'{day_number}{name}' if day else ''}"


def _clock(found: Match) -> str | None:
    before, after = _context(found)
    hour, minute, named, second = whole_number(found[1]), found[2], found[3], found[4]
    is_padded = minute[0] == "零"
    number = 30 if minute == "半" else whole_number(minute)
    if _COUNTED_POINTS.search(before) or (before.endswith("有") and minute == "十"):
        return None
    if hour is None or hour > 24 or number is None or number > 59:
        return None
    if len(minute) == 1 and minute != "半" and not (minute == "十" and named):
        return None
    if is_padded and not named and not _TIME_OF_DAY.search(before):
        return None  # 八点零五 is a decimal
    if not named and not re.match(_CLAUSE_END, after) and _COUNTED.match(after):
        return None  # 三点二十个人
    seconds = whole_number(second) if second else None
    return f"{hour or '00'}:{number:02}{f':{seconds:02}' if seconds is not None else ''}"


def _address(found: Match) -> str:
    return ".".join(map(_spelled, found[0].split("点")))


def _decimal(found: Match) -> str | None:
    before, after = _context(found)
    minus, whole, fraction, scale = found.groups()
    number = None if whole[-1] == "两" else _written(whole)
    if number is None or _COUNTED_POINTS.search(before) or (before.endswith("有") and whole == "一"):
        return None
    if len(fraction) == 1 and not scale:
        is_time = _TIME_OF_DAY.search(before) or re.match("分(?![钟之])", after)
        if is_time or (fraction == "一" and len(whole) == 1 and not _COUNTED.match(after)):
            return None
    return f"{'-' if minus else ''}{number}.{_spelled(fraction)}{scale or ''}"


def _ratio(found: Match) -> str | None:
    first, second = _written(found[1]), _written(found[2])
    return f"{first}:{second}" if first and second else None


def _calculation(found: Match) -> str | None:
    terms = [
        _OPERATORS.get(term) or ("-" if term == "负" else _written(term))
        for term in re.findall(_TERMS, found[0])
    ]
    known = [term for term in terms if term is not None]
    return "".join(known) if len(known) == len(terms) else None


def _range(found: Match) -> str | None:
    low, high = _written(found[1]), _written(found[2])
    return f"{low}~{high}" if low and high and len(high) > 1 and not _is_approximate(found) else None


def _money(found: Match) -> str | None:
    number = _written(found[1])
    if number is None or len(number) == 1:
        return None
    rest = "".join(str(DIGIT_VALUES.get(character, character)) for character in found[2])
    return number + rest


def _code(found: Match) -> str | None:
    """Years, codes and telephone numbers, which are spoken digit by digit."""
    words, (before, after) = found[0], _context(found)
    digits = _spelled(words)
    steps = {int(second) - int(first) for first, second in pairwise(digits)}
    has_zero = re.search("[零幺]", words)
    if re.search("[A-Za-z]$", before) or re.match("[A-Za-z]", after):
        return digits
    if len(words) == 2:
        year = after[:1] == "年" and (has_zero or not _APPROXIMATE_PAIR.fullmatch(words))
        return digits if year or (after[:1] == "后" and has_zero) else None
    if len(words) == 1 or after[:1] == "几":
        return None
    if len(words) == 3:
        return digits if has_zero or _SPELLED_AFTER.match(after) else None
    is_word = re.fullmatch(r"(.)\1(.)\2", words) or steps == {1}  # 七七八八, 一二三四
    return digits if has_zero or not is_word else None


def _cardinal(found: Match) -> str | None:
    minus, words = found.groups()
    before, after = _context(found)
    number = _written(words)
    if number is None or len(number) == 1 or words.endswith("两") or _is_approximate(found):
        return None
    counted = _COUNTED.match(after) or re.match(_WORD, after)
    if words in ("十", "十二") and re.match("分(?!钟|之)", after):  # adverbs
        return None
    if _APPROXIMATE_BEFORE.search(before) and not (counted and counted[0]):
        return None
    if _APPROXIMATE_PAIR.match(words[-1] + after):  # 十五六岁
        return None
    is_short = words[-1] in DIGIT_VALUES and words[-2] in "百千万亿"
    if is_short and counted and counted[0] not in ("", "人", "块", "元"):  # 一百|一个
        return None
    if words[-1] == "千" and re.match("[克瓦卡]", after):  # 一千克
        return None
    is_round = len(number.rstrip("0万亿兆")) == 1
    if (is_round or len(number) == 2) and not counted:
        return None
    return f"{'-' if minus else ''}{number}"


def _rule(pattern: str, write: Callable[[Match], str | None]) -> tuple[re.Pattern[str], Callable]:
    return re.compile(pattern), write


_SINGLE_COUNTED = rf"[一二两三四五六七八九](?!{_WORD})(?:{MEASURE_WORDS}|月)"
# The first that matches and gives digits applies.
_RULES = (
    _rule(
        rf"(?P<minus>负的?)?百分之?(?:(?P<whole>百|{_NUMBER})(?:点(?P<fraction>{_DIGIT}+))?)"
        rf"(?:到(?:百分之)?(?P<high>{_NUMBER}))?",
        _percentage,
    ),
    _rule(rf"({_NUMBER})分之({_NUMBER})", _fraction),
    _rule(rf"(?:({_NUMBER})年)?({_NUMBER})月(?:({_NUMBER})([日号]?))?", _date),
    _rule(rf"({_NUMBER})点({_NUMBER}|半(?!个))(?:(分)(?:({_NUMBER})秒)?)?", _clock),
    _rule(rf"{_DIGIT}+(?:点{_DIGIT}+){{3}}(?!点)", _address),
    _rule(rf"(负的?)?({_NUMBER})点({_DIGIT}+)([万亿]?)(?!{_WORD}|[刻点])", _decimal),
    _rule(rf"({_NUMBER})比({_NUMBER})", _ratio),
    _rule(rf"负?{_NUMBER}(?:(?:{'|'.join(_OPERATORS)})负?{_NUMBER})+", _calculation),
    _rule(rf"({_NUMBER})到({_NUMBER})(?!点)", _range),
    _rule(rf"({_NUMBER})([块元]{_DIGIT}(?:{_CLAUSE_END}|[毛角](?:{_DIGIT}(?=分))?))", _money),
    _rule(rf"{_DIGIT}+(?!{_WORD})", _code),
    _rule(rf"(负的?)?({_NUMBER})(?!{_WORD})", _cardinal),
    _rule(rf"(负的?)?({_NUMBER})(?={_SINGLE_COUNTED}|千[克米瓦卡])", _cardinal),
)
