"""Numbers in figures, as transcripts and texts write them, in; the words that Mandarin reads them as, out."""

from __future__ import annotations

import re

DIGITS = "零一二三四五六七八九"
UNITS = ("", "十", "百", "千")
MYRIADS = ("", "万", "亿", "万亿")
LONGEST_CARDINAL = 16  # digits; longer ones are numbers of something, read one by one
_NUMBER = re.compile(r"(?<![A-Za-z\d.,])(\d{1,3}(?:,\d{3})+|\d+)(?:\.(\d+))?(%)?(?![A-Za-z\d])")
# What is read digit by digit: years, and what begins with 0 (codes) or is long and not round (telephones).
LONG, ROUND = 7, 5  # digits; digits before the zeros at the end
_YEAR = re.compile(r"\s*年")


def in_words(text: str) -> str:
    """Write the numbers of a text in hanzi: 2024年 → 二零二四年, 120人 → 一百二十人, 3.5% → 百分之三点五.

    Mandarin has more than one way (两 for 二, 幺 for 一, 2,000 as 两千): what comes out is one of them.
    Numbers that touch Latin letters (MP3, 4G) stay as they are.
    """
    return _NUMBER.sub(lambda found: _read(found, text), text)


def cardinal(number: int) -> str:
    """A whole number below 10¹⁶: 105 → 一百零五, 10 → 十, 20000 → 二万."""
    if number == 0:
        return DIGITS[0]
    groups = []
    while number:
        number, group = divmod(number, 10_000)
        groups.append(group)
    words = ""
    for place in reversed(range(len(groups))):
        group = groups[place]
        if not group:
            continue
        gap = bool(words) and (group < 1000 or (place + 1 < len(groups) and not groups[place + 1]))
        words += (DIGITS[0] if gap else "") + _below_myriad(group) + MYRIADS[place]
    return words[1:] if words.startswith("一十") else words


def _below_myriad(number: int) -> str:
    words, gap = "", False
    for place in (3, 2, 1, 0):
        digit = number // 10**place % 10
        if not digit:
            gap = bool(words)
            continue
        words += (DIGITS[0] if gap else "") + DIGITS[digit] + UNITS[place]
        gap = False
    return words


def _read(found: re.Match[str], text: str) -> str:
    grouped, fraction, percent = found.groups()
    whole = grouped.replace(",", "")
    if whole == grouped and _is_read_one_by_one(whole, fraction, text[found.end() :]):
        words = spelled(whole)
    else:
        words = cardinal(int(whole))
    if fraction:
        words += "点" + spelled(fraction)
    return f"百分之{words}" if percent else words


def _is_read_one_by_one(whole: str, fraction: str | None, rest: str) -> bool:
    if fraction:
        return len(whole) > LONGEST_CARDINAL
    year = len(whole) == 4 and _YEAR.match(rest) is not None
    return year or is_code(whole)


def is_code(digits: str) -> bool:
    """Whether figures are no quantity, by their look: 007, telephones, and what is too long for a name."""
    long = len(digits) >= LONG and len(digits.rstrip("0")) > ROUND
    return (len(digits) > 1 and digits[0] == "0") or long or len(digits) > LONGEST_CARDINAL


def spelled(digits: str) -> str:
    """Figures read one by one: 007 → 零零七."""
    return "".join(DIGITS[int(digit)] for digit in digits)
