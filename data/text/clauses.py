"""Splits raw Chinese text into clauses of hanzi only, and names the reason why other clauses are rejected.

Markup is removed, full-width forms are normalised (NFKC), traditional characters are converted to simplified
ones by OpenCC. Lines are split at punctuation. Text in brackets is moved to the end of its line, as clauses
of its own. Quotation marks and the dot in names are removed; so is 、, but a clause that is too long is split
there. Numbers are written as they are read aloud (``utils.mandarin.verbalisation``). Regular expressions work
on the whole text, which is fast; only clauses with digits, letters or signs are processed one by one.
"""

import html
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from utils.mandarin.numerals import with_zeros
from utils.mandarin.pinyin import HANZI_BLOCKS, NAME_DOTS, is_hanzi
from utils.mandarin.simplified import simplified
from utils.mandarin.verbalisation import verbalise

LETTERS = "Latin letters"
FIGURES = "figures without a certain reading"
SYMBOLS = "symbols"
SCRIPTS = "other scripts"
ADDRESSES = "web or mail address"
REPEATED = "one character over and over"
SHORT = "too short"
LONG = "too long"
SHORTEST, LONGEST = 2, 50  # hanzi in a clause
MAX_REPEATED = 4  # times that a hanzi may occur in a row: 哈哈哈哈

_ADDRESS = "\ue000"  # replaces a web or mail address
_BREAK = "\ue001"  # between two clauses of a line
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_COMMA = "、"  # separates items of a list; a clause that is too long is split there

_HIDDEN = re.compile(
    "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef]"
)
_INVISIBLE_MARKUP = re.compile(r"<(script|style)\b[^<]{0,5000}</\1>|<!--.{0,1000}?-->", re.IGNORECASE)
_INLINE_TAG = re.compile(
    r"</?(?:a|b|i|u|em|strong|span|font|sub|sup|mark|small)\b[^<>]{0,500}>", re.IGNORECASE
)
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,500}>")
_URL = re.compile(
    # A mail address begins where its letters do: a search from each of them would take quadratic time.
    r"(?:https?://|ftp://|www\.)[!-;=?-~]+|(?<![\w.+-])[\w.+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+",
    re.ASCII,
)
_SEPARATE_URL = re.compile(f"(?<=\\s){_ADDRESS}|{_ADDRESS}(?=\\s)")
_FRACTIONS = ("二分之一", "三分之一", "三分之二", "四分之一", "四分之三")
# Replaced before NFKC, which would turn ² into 2 and ， into an ordinary comma
_BEFORE_NFKC = {
    **dict.fromkeys(map(ord, "，。！？；…"), _BREAK),
    **dict.fromkeys(range(0x2460, 0x2500), _BREAK),  # ① ⑴ ⒈ Ⓐ: bullets
    **dict.fromkeys(range(0x3200, 0x3248), _BREAK),  # ㈠
    **str.maketrans(dict(zip("½⅓⅔¼¾", _FRACTIONS, strict=True))),
}
_MIXED_FRACTION = re.compile(r"(?<=\d)(?=[½⅓⅔¼¾])")
_AFTER_NFKC = {
    **dict.fromkeys(map(ord, '“”‘’"「」『』《》〈〉'), ""),
    ord("\u2044"): "/",
    ord("−"): "-",
    ord("〜"): "~",
    ord("µ"): "μ",
}
_IN_BRACKETS = re.compile(r"\(([^()\n]{0,80})\)")
_FULL_WIDTH_GROUPS = re.compile(r"(?<=\d)，(?=\d{3}(?!\d))")  # 3，000
_NAME_DOT = re.compile(f"(?<=[{HANZI_BLOCKS}])[{NAME_DOTS}](?=[{HANZI_BLOCKS}])")
_ENUMERATOR = re.compile(
    rf"(?:^|(?<=[\n{_BREAK}]))\s*(?:[0-9]{{1,3}}|[一二三四五六七八九十]{{1,3}})(?:[、)]|\.(?![0-9]))"
    r"(?![0-9零一二三四五六七八九十百千万亿])\s*"
)
_SPACE = r"[^\S\n]+"
_SPACE_IN_NUMBERS = re.compile(
    rf"(?<=[{HANZI_BLOCKS}]){_SPACE}(?=[0-9])|(?<=[0-9%]){_SPACE}(?=[{HANZI_BLOCKS}])"
)
_SPACE_AT_LATIN = re.compile(
    rf"(?<=[{HANZI_BLOCKS}]){_SPACE}(?=[A-Za-z])|(?<=[A-Za-z]){_SPACE}(?=[{HANZI_BLOCKS}])"
)
_SEPARATE_WORDS = re.compile(rf"^(?:[{HANZI_BLOCKS}]{{1,4}}|[^\s\w]){_SPACE}\S.*$", re.MULTILINE)
# A line of at least this many tokens, of at most this many characters on average, has spaces between words.
_MIN_WORDS, _MAX_MEAN_LENGTH = 4, 2.6
# Clauses end at all signs, but at signs that occur in numbers only where no digit is beside them.
_SIGNS_OF_FIGURES = f"{NAME_DOTS}%‰°+/$¥€£×.:,~—–-"
_ENDS = re.compile(
    rf"[^\w\s{_ADDRESS}{_COMMA}{re.escape(_SIGNS_OF_FIGURES)}]+"
    r"|[-~—–]{2,}|[-~—–](?![0-9])|[.:,{NAME_DOTS}](?![0-9])|(?<![0-9])[.:,{NAME_DOTS}]"
    rf"|[+/×](?![\w])|(?<!\w)[+/×]|(?<=[{HANZI_BLOCKS}])/(?=[{HANZI_BLOCKS}])(?<![元次人斤吨克米]/)|_+"
    rf"|(?<=[{HANZI_BLOCKS}]){_SPACE}|{_SPACE}(?=[{HANZI_BLOCKS}])"
)
_REPEATED = re.compile(rf"(.)\1{{{MAX_REPEATED}}}")
_COMMA_BESIDE_WORDS = re.compile(f"(?<![0-9]){_COMMA}|{_COMMA}(?![0-9])")
_FIGURE, _LATIN = re.compile("[0-9]"), re.compile("[A-Za-z]")


@dataclass(frozen=True)
class Clause:
    """A part of a line.

    Attributes:
        text: hanzi only if the clause is usable, else the original text.
        line: number of the line in the text, from 0.
        reason: why the clause can't be used; "" if it can.
    """

    text: str
    line: int
    reason: str = ""


def clauses(text: str, shortest: int = SHORTEST, longest: int = LONGEST) -> Iterator[Clause]:
    """All clauses of a text, in order; parts without hanzi, digits and letters are left out.

    A usable clause stays the same when it is processed again.

    Args:
        text: any number of lines.
        shortest, longest: numbers of hanzi that a clause may have.
    """
    lines = simplified(_split(_normalise(text))).split("\n")
    for number, line in enumerate(lines):
        for raw in line.split(_BREAK):
            for part in _split_long(raw.strip(), longest):
                if clause := _clause(part, number, shortest, longest):
                    yield clause


def hanzi_of(text: str) -> str:
    """All hanzi of a text in a row, as :func:`clauses` writes them; used to compare two texts."""
    parts = (clause.text for clause in clauses(text, 1, len(text) * 20 + 1))
    return "".join(character for part in parts for character in part if is_hanzi(character))


def _normalise(text: str) -> str:
    """Text without markup, addresses, full-width and invisible characters; line breaks are kept."""
    if "&" in text:
        text = html.unescape(text)
    text = _PRIVATE.sub("\ufffd", text)
    if "<" in text:
        text = _TAG.sub(_BREAK, _INLINE_TAG.sub("", _INVISIBLE_MARKUP.sub(_BREAK, text)))
    if "://" in text or "www." in text or "@" in text:
        text = _SEPARATE_URL.sub(f"{_BREAK}{_ADDRESS}{_BREAK}", _URL.sub(_ADDRESS, text))
    text = with_zeros(_FULL_WIDTH_GROUPS.sub(",", _HIDDEN.sub("", text)))
    text = _MIXED_FRACTION.sub("又", text).translate(_BEFORE_NFKC)
    if not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", text)
    return text.translate(_AFTER_NFKC)


def _split(text: str) -> str:
    """The text with ``_BREAK`` between its clauses."""
    if "(" in text:
        text = "\n".join(_move_brackets(line) if "(" in line else line for line in text.split("\n"))
    text = _NAME_DOT.sub("", _ENUMERATOR.sub(_BREAK, text))
    text = _SPACE_IN_NUMBERS.sub("", _SEPARATE_WORDS.sub(_join_words, text))
    return _ENDS.sub(_BREAK, _SPACE_AT_LATIN.sub("", text))


def _move_brackets(line: str) -> str:
    """Move text in brackets behind the line, as clauses of its own."""
    inside: list[str] = []
    while found := _IN_BRACKETS.search(line):  # the innermost first
        inside.append(found[1])
        line = line[: found.start()] + line[found.end() :]
    return _BREAK.join([line, *inside])


def _join_words(found: re.Match[str]) -> str:
    """Remove the spaces of a line in which all words are separated by spaces."""
    tokens = found[0].split()
    separated = len(tokens) >= _MIN_WORDS and sum(map(len, tokens)) <= _MAX_MEAN_LENGTH * len(tokens)
    return "".join(tokens) if separated else found[0]


def _split_long(clause: str, longest: int) -> Iterator[str]:
    """Remove 、 except between digits; a clause that is too long is split there, into few parts."""
    if len(whole := _COMMA_BESIDE_WORDS.sub("", clause)) <= longest or _COMMA not in clause:
        yield whole
        return
    part = ""
    for piece in clause.split(_COMMA):
        longer = _COMMA_BESIDE_WORDS.sub("", f"{part}{_COMMA}{piece}" if part else piece)
        if part and len(longer) > longest:
            yield part
            longer = piece
        part = longer
    yield part


def _clause(text: str, line: int, shortest: int, longest: int) -> Clause | None:
    """The clause of a text, with numbers written in hanzi; None for punctuation only."""
    if not is_hanzi(text):
        if _ADDRESS in text:
            return Clause(text.replace(_ADDRESS, "…"), line, ADDRESSES)
        if not any(map(str.isalnum, text)):
            return None
        words = verbalise(text).replace(_COMMA, "")
        if not is_hanzi(words):
            return Clause(text, line, _reason(words))
        text = words
    if len(text) < shortest:
        return Clause(text, line, SHORT)
    if len(text) > longest:
        return Clause(text, line, LONG)
    if _REPEATED.search(text):
        return Clause(text, line, REPEATED)
    return Clause(text, line)


def _reason(text: str) -> str:
    """Why a text that consists not only of hanzi can't be read aloud."""
    if _LATIN.search(text):
        return LETTERS
    if _FIGURE.search(text):
        return FIGURES
    foreign = any(character.isalnum() and not is_hanzi(character) for character in text)
    return SCRIPTS if foreign else SYMBOLS
