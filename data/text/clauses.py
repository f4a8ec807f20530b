"""Raw lines of Chinese text in; clauses of nothing but hanzi, and the others with the reason why not, out.

Split at punctuation; brackets are taken out of their sentence and stand after it; quotation marks, 、 and the
dot in names leave no trace; whole text first (C speed), single clauses only where figures have to be read.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import opencc

from data.text.verbalisation import verbalise
from utils.mandarin.pinyin import NAME_DOTS, is_hanzi

LETTERS = "Latin letters"
FIGURES = "figures without a certain reading"
SYMBOLS = "symbols"
SCRIPTS = "other scripts"
ADDRESSES = "web or mail address"
REPEATED = "one character over and over"
SHORT = "too short"
LONG = "too long"
MOST_REPEATED = 4  # times that a hanzi may come in a row: 哈哈哈哈

_ADDRESS = "\ue000"  # stands for a web or mail address
_BREAK = "\ue001"  # between two clauses of a line
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_HANZI = "\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_SOFT = "、"  # a pause inside a clause; a clause that is too long is cut there

_HIDDEN = re.compile(
    "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef]"
)
_UNSEEN = re.compile(r"<(script|style)\b[^<]{0,5000}</\1>|<!--.{0,1000}?-->", re.IGNORECASE)
_INLINE_TAG = re.compile(
    r"</?(?:a|b|i|u|em|strong|span|font|sub|sup|mark|small)\b[^<>]{0,500}>", re.IGNORECASE
)
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,500}>")
_URL = re.compile(
    r"(?:https?://|ftp://|www\.)[!-;=?-~]+|[\w.+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+", re.ASCII
)
_URL_ASIDE = re.compile(f"(?<=\\s){_ADDRESS}|{_ADDRESS}(?=\\s)")
_FRACTIONS = ("二分之一", "三分之一", "三分之二", "四分之一", "四分之三")
# Before NFKC would make a 2 of ² and a comma like any other of ，
_BEFORE_NFKC = {
    **dict.fromkeys(map(ord, "，。！？；…"), _BREAK),
    **dict.fromkeys(range(0x2460, 0x2500), _BREAK),  # ① ⑴ ⒈ Ⓐ: bullets
    **dict.fromkeys(range(0x3200, 0x3248), _BREAK),  # ㈠
    **str.maketrans(dict(zip("½⅓⅔¼¾", _FRACTIONS, strict=True))),
}
_MIXED_FRACTION = re.compile(r"(?<=\d)(?=[½⅓⅔¼¾])")
_AFTER_NFKC = {
    **dict.fromkeys(map(ord, '“”‘’"「」『』《》〈〉'), ""),
    ord("〇"): "零",
    ord("妳"): "你",
    ord("馀"): "余",
    ord("\u2044"): "/",
    ord("−"): "-",
    ord("〜"): "~",
    ord("µ"): "μ",
}
_IN_BRACKETS = re.compile(r"\(([^()\n]{0,80})\)")
_NAME_DOT = re.compile(f"(?<=[{_HANZI}])[{NAME_DOTS}](?=[{_HANZI}])")
_ENUMERATOR = re.compile(
    rf"(?:^|(?<=[\n{_BREAK}]))\s*(?:[0-9]{{1,3}}|[一二三四五六七八九十]{{1,3}})(?:[、)]|\.(?![0-9]))"
    r"(?![0-9零一二三四五六七八九十百千万亿])\s*"
)
_SPACE = r"[^\S\n]+"
_SPACE_IN_NUMBERS = re.compile(rf"(?<=[{_HANZI}]){_SPACE}(?=[0-9])|(?<=[0-9%]){_SPACE}(?=[{_HANZI}])")
_SPACE_AT_LATIN = re.compile(rf"(?<=[{_HANZI}]){_SPACE}(?=[A-Za-z])|(?<=[A-Za-z]){_SPACE}(?=[{_HANZI}])")
_WORDS_APART = re.compile(rf"^(?:[{_HANZI}]{{1,4}}|[^\s\w]){_SPACE}\S.*$", re.MULTILINE)
_LEAST_WORDS, _MEAN_WORD = (
    4,
    2.6,
)  # a line of so many tokens, of so few characters each, has its words set apart
# Where clauses end: all signs but those that belong to figures; the latter where no figure is beside them.
_SIGNS_OF_FIGURES = "%‰°+/$¥€£×.:,~—–-"
_ENDS = re.compile(
    rf"[^\w\s{_ADDRESS}{_SOFT}{re.escape(_SIGNS_OF_FIGURES)}]+"
    r"|[-~—–]{2,}|[-~—–](?![0-9])|[.:,](?![0-9])|(?<![0-9])[.:,]"
    rf"|[+/×](?![\w])|(?<!\w)[+/×]|(?<=[{_HANZI}])/(?=[{_HANZI}])(?<![元次人斤吨克米]/)|_+"
    rf"|(?<=[{_HANZI}]){_SPACE}|{_SPACE}(?=[{_HANZI}])"
)
_REPEATED = re.compile(rf"(.)\1{{{MOST_REPEATED}}}")
_SOFT_BESIDE_WORDS = re.compile(f"(?<![0-9]){_SOFT}|{_SOFT}(?![0-9])")
_FIGURE, _LATIN = re.compile("[0-9]"), re.compile("[A-Za-z]")


@dataclass(frozen=True)
class Limits:
    """How many hanzi a clause may have."""

    shortest: int = 2
    longest: int = 50


@dataclass(frozen=True)
class Clause:
    """A part of a line: usable if there is no ``reason`` against it.

    Attributes:
        text: hanzi only if usable, else as it was found.
        line: number of the line in the text, from 0.
        reason: why it can't be used; "" if it can.
    """

    text: str
    line: int
    reason: str = ""


def clauses(text: str, limits: Limits) -> Iterator[Clause]:
    """All clauses of a text, in order; what holds neither hanzi nor figures nor letters is none.

    A usable clause comes out unchanged when it is cut again.

    Args:
        text: any number of lines.
        limits: of a usable clause.
    """
    lines = _simplified(_cut(_plain(text))).split("\n")
    for number, line in enumerate(lines):
        for raw in line.split(_BREAK):
            for part in _fitting(raw.strip(), limits.longest):
                if clause := _judged(part, number, limits):
                    yield clause


def hanzi_of(text: str) -> str:
    """All hanzi of a text in a row, as :func:`clauses` writes them: what two texts are compared by."""
    parts = (clause.text for clause in clauses(text, Limits(1, len(text) * 20 + 1)))
    return "".join(character for part in parts for character in part if is_hanzi(character))


def _plain(text: str) -> str:
    """Text without markup, addresses, width and invisible characters; lines stay lines."""
    if "&" in text:
        text = html.unescape(text)
    text = _PRIVATE.sub("\ufffd", text)
    if "<" in text:
        text = _TAG.sub(_BREAK, _INLINE_TAG.sub("", _UNSEEN.sub(_BREAK, text)))
    if "://" in text or "www." in text or "@" in text:
        text = _URL_ASIDE.sub(f"{_BREAK}{_ADDRESS}{_BREAK}", _URL.sub(_ADDRESS, text))
    text = _MIXED_FRACTION.sub("又", _HIDDEN.sub("", text)).translate(_BEFORE_NFKC)
    if not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", text)
    return text.translate(_AFTER_NFKC)


def _cut(text: str) -> str:
    """The same with a break between clauses."""
    if "(" in text:
        text = "\n".join(_brackets_last(line) if "(" in line else line for line in text.split("\n"))
    text = _NAME_DOT.sub("", _ENUMERATOR.sub(_BREAK, text))
    text = _SPACE_IN_NUMBERS.sub("", _WORDS_APART.sub(_words_together, text))
    return _ENDS.sub(_BREAK, _SPACE_AT_LATIN.sub("", text))


def _brackets_last(line: str) -> str:
    inside: list[str] = []
    while found := _IN_BRACKETS.search(line):  # the innermost first
        inside.append(found[1])
        line = line[: found.start()] + line[found.end() :]
    return _BREAK.join([line, *inside])


def _words_together(found: re.Match[str]) -> str:
    tokens = found[0].split()
    apart = len(tokens) >= _LEAST_WORDS and sum(map(len, tokens)) <= _MEAN_WORD * len(tokens)
    return "".join(tokens) if apart else found[0]


@cache
def _converter() -> opencc.OpenCC:
    return opencc.OpenCC("t2s")


def _simplified(text: str) -> str:
    """OpenCC's simplified characters, by its phrases; converting again changes nothing."""
    convert = _converter().convert
    while (converted := convert(text)) != text:
        text = converted
    return text


def _fitting(clause: str, longest: int) -> Iterator[str]:
    """The clause without 、 but between figures; one that is too long is cut there, into few parts."""
    if len(whole := _SOFT_BESIDE_WORDS.sub("", clause)) <= longest or _SOFT not in clause:
        yield whole
        return
    part = ""
    for piece in clause.split(_SOFT):
        longer = _SOFT_BESIDE_WORDS.sub("", f"{part}{_SOFT}{piece}" if part else piece)
        if part and len(longer) > longest:
            yield part
            longer = piece
        part = longer
    yield part


def _judged(text: str, line: int, limits: Limits) -> Clause | None:
    if not is_hanzi(text):
        if _ADDRESS in text:
            return Clause(text.replace(_ADDRESS, "…"), line, ADDRESSES)
        if not any(map(str.isalnum, text)):
            return None
        words = verbalise(text).replace(_SOFT, "")
        if not is_hanzi(words):
            return Clause(text, line, _obstacle(words))
        text = words
    if len(text) < limits.shortest:
        return Clause(text, line, SHORT)
    if len(text) > limits.longest:
        return Clause(text, line, LONG)
    if _REPEATED.search(text):
        return Clause(text, line, REPEATED)
    return Clause(text, line)


def _obstacle(text: str) -> str:
    """Why a text that isn't all hanzi can't be read."""
    if _LATIN.search(text):
        return LETTERS
    if _FIGURE.search(text):
        return FIGURES
    foreign = any(character.isalnum() and not is_hanzi(character) for character in text)
    return SCRIPTS if foreign else SYMBOLS
