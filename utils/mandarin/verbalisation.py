"""Writes numbers, units and signs of a clause in hanzi, as a newsreader reads them, by regular expressions.

:func:`verbalise` leaves numbers without a certain reading as they are (3-1, 1.2.3, 5G): the caller then
rejects the clause. :func:`numbers_to_hanzi` guesses some of them.
Where several readings are common, one is used: 两 before measure words and 千, 幺 in telephone numbers, 公斤
for kg.
"""

import re
from collections.abc import Callable
from typing import Any

from utils.mandarin.numerals import DIGITS, LONGEST_CARDINAL, MEASURE_WORDS, cardinal, is_code, spell_digits
from utils.mandarin.pinyin import NAME_DOTS

_MEASURE = re.compile(MEASURE_WORDS)
# 1900 to 2099 alone may be a year or an amount; before these, and before measure words, it is an amount.
_COUNTED = re.compile(rf"{MEASURE_WORDS}|余|多|来|摄氏度|度")
_EVENTS = "赛季|奥运|世界杯|欧洲杯|世锦赛|亚运|冬奥|春晚|财年|年度|学年|款|新款|版|秋冬|春夏|届|级新生|级学生"
_DEFEATS = "击败|战胜|胜|负|不敌|大胜|逆转|领先|落后|险胜|力克|完胜|战平|惜败|惨败|获胜|取胜|告负|淘汰|横扫"
# Numbers that are read digit by digit like telephone numbers, 1 as 幺.
_CODES = (
    r"(?<=拨打|热线|致电|电话)[0-9]{3,5}(?![0-9.%:/-])",
    r"(?<![0-9.])(?:110|119|120|122)(?=报警|急救|民警|指挥|接警|火警|出警|救护|热线)",
    r"(?<![0-9.])(?:12306|12315|12345|12333|10086|10010|95598)(?![0-9.%])(?!个|元|人|名|万)",
    r"(?<![0-9.])(?:985|211|996|618|315)(?=高校|大学|院校|工程|工作制|加班|大促|购物节|晚会|曝光)",
    r"(?<=波音|空客)7[0-9]7(?![0-9])|(?<=空客)3[0-9]{2}(?![0-9])",
    r"(?<![0-9.])[0-9]{3,4}(?=室|房间|航班|次列车|路公交|国道|省道)",
)
_TELEPHONES = (
    r"(?<![0-9])(?:\+?86-?)?(1[3-9][0-9])-?([0-9]{4})-?([0-9]{4})(?![0-9])",
    r"(?<![0-9])(0[0-9]{2,3})-([0-9]{7,8})(?![0-9])",
    r"(?<![0-9])([48]00)-([0-9]{3,4})-([0-9]{3,4})(?![0-9])",
)
_CURRENCIES = {"US$": "美元", "HK$": "港元", "$": "美元", "¥": "元", "￥": "元", "€": "欧元", "£": "英镑"}
_UNITS = {
    "km/h": "公里每小时",
    "m/s": "米每秒",
    "°C": "摄氏度",
    "°F": "华氏度",
    "°": "度",
    "kWh": "千瓦时",
    "kwh": "千瓦时",
    "km2": "平方公里",
    "cm2": "平方厘米",
    "m2": "平方米",
    "cm3": "立方厘米",
    "m3": "立方米",
    "MHz": "兆赫",
    "GHz": "吉赫",
    "Hz": "赫兹",
    "min": "分钟",
    "km": "公里",
    "KM": "公里",
    "Km": "公里",
    "dm": "分米",
    "cm": "厘米",
    "CM": "厘米",
    "mm": "毫米",
    "nm": "纳米",
    "μm": "微米",
    "kg": "公斤",
    "KG": "公斤",
    "Kg": "公斤",
    "mg": "毫克",
    "ml": "毫升",
    "mL": "毫升",
    "kW": "千瓦",
    "kw": "千瓦",
    "ha": "公顷",
    "h": "小时",
    "m": "米",
    "g": "克",
    "t": "吨",
    "L": "升",
    "l": "升",
    "W": "瓦",
    "V": "伏",
}
_LOW_END = re.compile(rf"[到至][0-9.]+(?:{MEASURE_WORDS})")  # 2到3个
_GENERATION = re.compile(r"(?<![0-9.])[2-6]$")  # 5g: a mobile network, not a weight
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_START, _END = r"(?<![A-Za-z0-9.:/_+-])", r"(?![A-Za-z0-9:/_%‰+-]|\.[0-9])"
_DASH = "[-~—–]"
_REMAINING = re.compile(r"(?<![A-Za-z0-9.])[0-9]+(?:\.[0-9]+)?(?!%?[A-Za-z0-9]|\.[0-9])")
_DURATION = "前|后|来|间|代|内|以|多|里|龄|历|之"  # after 年: a number of years, not a year
_LASTING = "第近过达有满约共后前了隔的长国立婚这每十百千万几"  # before the figure, likewise


def verbalise(text: str) -> str:
    """Write numbers, units and signs in hanzi: 3.5%的人 → 百分之三点五的人, 2026-1-5 → 二零二六年一月五日.

    Args:
        text: one clause, NFKC-normalised and simplified, without spaces beside hanzi.
    """
    for pattern, read in _RULES:
        text = pattern.sub(read, text)
    return text


def numbers_to_hanzi(text: str) -> str:
    """As :func:`verbalise`; others are read as amounts, except those beside Latin letters and 1.2.3."""
    return _REMAINING.sub(lambda found: amount(found[0]), verbalise(text))


def amount(number: str, counted: bool = False) -> str:
    """A quantity: 2000 → 两千, 12.50 → 十二点五零, 200 → 两百; 2 → 二, or 两 if something is ``counted``."""
    if counted and number == "2":
        return "两"
    whole, _, fraction = number.partition(".")
    by_digits = len(whole) > LONGEST_CARDINAL or (is_code(whole) and not (fraction or counted))
    words = spell_digits(whole) if by_digits else cardinal(int(whole))
    words = re.sub("^二(?=[百千万亿])|(?<=[万亿])二(?=千)", "两", words)
    return f"{words}点{spell_digits(fraction)}" if fraction else words


def _code(found: re.Match[str]) -> str:
    return spell_digits(re.sub("[^0-9]", "", found[0])).replace(DIGITS[1], "幺")


def _telephone(found: re.Match[str]) -> str:
    return spell_digits("".join(found.groups())).replace(DIGITS[1], "幺")


def _date(found: re.Match[str]) -> str:
    year, month, day = found["year"], int(found["month"]), int(found["day"])
    return f"{spell_digits(year)}年{cardinal(month)}月{cardinal(day)}日"


def _time(found: re.Match[str]) -> str:
    hour, minute, second = found.groups()
    words = amount(str(int(hour)), counted=True) + "点"
    if int(minute) or second:
        words += f"{spell_digits(minute) if minute[0] == '0' else cardinal(int(minute))}分"
    return words + (f"{cardinal(int(second))}秒" if second else "")


def _range(found: re.Match[str]) -> str:
    low, high = found["low"], found["high"]
    return f"{low}到{high}" if float(low) < float(high) else found[0]


def _percent(found: re.Match[str]) -> str:
    base = "百分之" if found["sign"] == "%" else "千分之"
    low = f"{amount(found['low'])}到" if found["low"] else ""
    high = "百" if found["high"] == "100" and base == "百分之" else amount(found["high"])
    return f"{base}{low}{high}"


def _with_unit(found: re.Match[str]) -> str:
    number, unit = found["number"], found["unit"]
    if unit == "g" and _GENERATION.search(number):
        return found[0]
    sign = ""
    if found["sign"]:
        sign = "零下" if unit.startswith("°") else "负"
    return sign + amount(number, counted=True) + _UNITS[unit]


def _money(found: re.Match[str]) -> str:
    scale = found["scale"] or ""
    return amount(found["number"], counted=True) + scale + _CURRENCIES[found["sign"]]


def _fraction(found: re.Match[str]) -> str:
    part, whole = int(found[1]), int(found[2])
    return f"{cardinal(whole)}分之{cardinal(part)}" if 0 < part < whole <= 10 or whole == 100 else found[0]


def _plain(found: re.Match[str]) -> str:
    number, rest = found["number"], found.string[found.end() :]
    before = found.string[: found.start()][-1:]
    if before == "第":
        return cardinal(int(number)) if number.isdecimal() and len(number) <= LONGEST_CARDINAL else found[0]
    if _MEASURE.match(rest) or _LOW_END.match(rest):
        return amount(number, counted=True)
    if re.fullmatch("(?:19|20)[0-9]{2}", number) and not _COUNTED.match(rest):
        return found[0]  # a year or an amount
    return amount(number)


def _years(found: re.Match[str]) -> str:
    """Years are read digit by digit, except round thousands and periods: 1500年前, 3000年."""
    number, rest = found[0], found.string[found.end() :]
    lasting = number.endswith("00") and re.match("年(?:前|历史|来|间|以)", rest)
    year = 1000 < int(number) < 2100 and not lasting
    return spell_digits(number) if year else amount(number)


def _rule(pattern: str, read: str | Callable[[re.Match[str]], str]) -> tuple[re.Pattern[str], Any]:
    return re.compile(pattern), read


_UNIT_NAMES = "|".join(map(re.escape, sorted(_UNITS, key=len, reverse=True)))
_SIGNS = "|".join(map(re.escape, _CURRENCIES))
_DAY = "(?P<month>0?[1-9]|1[0-2]){0}(?P<day>0?[1-9]|[12][0-9]|3[01])(?![0-9.])日?"
# Applied in this order: more specific rules first.
_RULES = (
    _rule(r"(?<![0-9.])[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])", lambda found: found[0].replace(",", "")),
    *(_rule(pattern, _telephone) for pattern in _TELEPHONES),
    *(_rule(pattern, _code) for pattern in _CODES),
    # Events that are called by their date: 3.15晚会, 9·11.
    _rule(
        rf"(?<![0-9.])([0-9]{{1,2}})[{NAME_DOTS}]([0-9]{{1,2}})(?![0-9.])",
        lambda found: spell_digits(found[1] + found[2]),
    ),
    _rule(
        r"(?<![0-9.])([0-9]{1,2})\.([0-9]{1,2})(?=地震|事件|事变|惨案|运动(?![员会场服鞋])|暴雨|晚会|妇女节|儿童节)",
        lambda found: spell_digits(found[1] + found[2]),
    ),
    *(
        _rule(rf"(?<![0-9.])(?P<year>[12][0-9]{{3}}){mark}{_DAY.format(mark)}", _date)
        for mark in ("-", "/", r"\.")
    ),
    _rule(
        rf"(?<![0-9.])((?:1[89]|20)[0-9]{{2}})年?{_DASH}((?:1[89]|20)[0-9]{{2}})(?=年|{_EVENTS}|学年)",
        lambda found: f"{spell_digits(found[1])}到{spell_digits(found[2])}",
    ),
    _rule(
        rf"(?<![0-9.])((?:19|20)[0-9]{{2}})[-/]([0-9]{{2}})(?={_EVENTS})",
        lambda found: f"{spell_digits(found[1])}到{spell_digits(found[2])}",
    ),
    _rule(r"(?<![0-9.])[1-9][0-9]{3}(?=年(?!级))", _years),
    _rule(rf"(?<![0-9.])(?:19|20)[0-9]{{2}}(?={_EVENTS})", lambda found: spell_digits(found[0])),
    _rule(
        rf"(?<![0-9.{_LASTING}])(?:0[0-9]|[5-9][1-9])(?=年(?!{_DURATION}))|(?<![0-9.])0[0-9](?=年|后)|(?<![0-9.])[05-9][05](?=(?:、[05-9][05])*后(?![来面续期的]))",
        lambda found: spell_digits(found[0]),
    ),
    _rule(
        rf"(?:(?<=比分)|(?<![0-9:.-]))([0-9]{{1,3}})[:-]([0-9]{{1,3}})(?=的?(?:{_DEFEATS}))",
        lambda found: f"{cardinal(int(found[1]))}比{cardinal(int(found[2]))}",
    ),
    _rule(rf"(?<=[0-9]:[0-5][0-9]){_DASH}(?=[0-9]{{1,2}}:)", "到"),
    _rule(r"(?<![0-9:.])([01]?[0-9]|2[0-4]):([0-5][0-9])(?::([0-5][0-9]))?(?![0-9:])", _time),
    _rule(
        r"(?<![0-9:.])([0-9]{1,3}):([0-9]{1,3})(?![0-9:.])",
        lambda found: f"{cardinal(int(found[1]))}比{cardinal(int(found[2]))}",
    ),
    _rule(rf"(?<=[年月日号时点]){_DASH}(?=[0-9]+[年月日号时点])", "到"),
    _rule(rf"(?<=[%‰])(?:{_DASH}|至)(?=[0-9])", "到"),
    _rule(
        rf"{_START}(?P<low>{_NUMBER}){_DASH}(?P<high>{_NUMBER})"
        rf"(?=[%‰一-鿿]|(?:{_UNIT_NAMES})(?![A-Za-z0-9]))",
        _range,
    ),
    _rule(rf"(?<![A-Za-z0-9.:/_+-])(?:(?P<low>{_NUMBER})[到至])?(?P<high>{_NUMBER})(?P<sign>[%‰])", _percent),
    _rule(
        rf"(?P<sign>{_SIGNS})(?P<number>{_NUMBER})(?![0-9.])(?P<scale>百万|千万|万亿|[万亿千百])?(?:元|美元|欧元|英镑|港元)?",
        _money,
    ),
    _rule(
        rf"(?<![0-9.])(?P<sign>(?<![0-9A-Za-z])-)?(?P<number>{_NUMBER})(?P<unit>{_UNIT_NAMES})(?![A-Za-z0-9/])",
        _with_unit,
    ),
    _rule(r"(?<![0-9./])([0-9]{1,2})/([0-9]{1,3})(?![0-9/.%])", _fraction),
    _rule("(?<=[元次人斤吨克米])/(?=[月年天日斤吨平小人次股公千升桶克件盒瓶晚间])", "每"),
    _rule(r"(?<=[0-9一-鿿])[×xX*](?=[0-9])", "乘"),
    _rule("(?:(?<=[为是至到从在达和])|^)-(?=[0-9])", "负"),
    _rule("(?<=[0-9]米)[0-9]{2}(?![0-9.])", lambda found: spell_digits(found[0])),  # 1米75
    _rule(rf"(?<![0-9.第、])2、3(?=(?:{MEASURE_WORDS}))", "两三"),
    _rule(rf"{_START}(?P<number>{_NUMBER}){_END}", _plain),
)
