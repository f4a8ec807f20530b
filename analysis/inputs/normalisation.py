"""Normalises transcripts by rules that the user chooses, and splits them into tokens.

Two transcripts of the same words can differ in how they are written. Each rule removes one such difference:
full width, traditional characters, numbers, punctuation, case.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable
from functools import partial

from utils.errors import ConfigError, CorpusError
from utils.mandarin.numerals import with_zeros
from utils.mandarin.pinyin import hanzi_to_pinyin, is_hanzi, normalise_syllable
from utils.mandarin.simplified import simplified
from utils.mandarin.verbalisation import numbers_to_hanzi

WIDTH, TRADITIONAL, DIGITS, PUNCTUATION, CASE = "width", "traditional", "digits", "punctuation", "case"
# In the order in which they are applied: numbers before punctuation, which removes decimal points and %.
RULES = (WIDTH, TRADITIONAL, DIGITS, PUNCTUATION, CASE)
DEFAULT_RULES = (WIDTH, PUNCTUATION, CASE)  # if the user names none
ALL, NONE = "all", "none"

_TAG = r"<[A-Za-z_/|-]+>|\[[A-Za-z_/|-]+\]"  # <unk>, [noise]: tags between words
_TOKEN = re.compile(
    rf"{_TAG}|[〇㐀-䶿一-鿿豈-﫿\U00020000-\U000323af]|[^\s〇㐀-䶿一-鿿豈-﫿\U00020000-\U000323af]+"
)
_TAGS = re.compile(_TAG)
_NUMERAL = "[零一二两三四五六七八九十百千万亿]"
_OPERATORS = re.compile(r"(?<=\d)[+=](?=\d)")
_SAME_NUMBER = (  # other words of the same number, and the usual ones
    (re.compile(f"(?<={_NUMERAL})幺|幺(?={_NUMERAL}|幺)"), "一"),
    (re.compile("两(?=[百千万亿])"), "二"),
    (re.compile("(?<=点)半(?!个)"), "三十"),
    (re.compile(f"(?<=点)({_NUMERAL}{{2,3}})分(?![之钟])"), r"\1"),
    (re.compile(f"(?<=百分之)一百(?!{_NUMERAL})"), "百"),
    (re.compile(f"(百分之{_NUMERAL}+到)百分之"), r"\1"),
)
_WITHIN = re.compile(r"(?<=\d)[.,:](?=\d)|(?<=[A-Za-z])['’](?=[A-Za-z])|(?<=\d)%")


def rules_of(text: str) -> tuple[str, ...]:
    """The rules named on a command line: ``width,case``, ``all``, ``none``.

    Raises:
        ConfigError: an unknown rule.
    """
    if text == NONE:
        return ()
    if text == ALL:
        return RULES
    requested = [rule.strip() for rule in text.split(",")]
    unknown = [rule for rule in requested if rule not in RULES]
    if unknown:
        raise ConfigError(
            f"unknown normalisation '{unknown[0]}'", hint=f"known: {', '.join(RULES)}; {ALL}, {NONE}"
        )
    return tuple(rule for rule in RULES if rule in requested)


def normalise(text: str, rules: Collection[str]) -> str:
    """Apply rules to a text, in the order of :data:`RULES`."""
    for rule in RULES:
        if rule in rules:
            text = _APPLY[rule](text)
    return text


def hanzi_tokens(text: str) -> tuple[str, ...]:
    """The tokens of a text: each hanzi, each tag, and each run of other characters between spaces."""
    return tuple(_TOKEN.findall(text.replace("▁", " ")))


def pinyin_tokens(text: str) -> tuple[tuple[str, ...], list[str]]:
    """Canonical syllables, and the words that are not syllables, which become tokens in brackets."""
    tokens, unknown = [], []
    for word in text.replace("▁", " ").split():
        try:
            tokens.append(normalise_syllable(word))
        except CorpusError:
            tokens.append(f"[{word}]")
            unknown.append(word)
    return tuple(tokens), unknown


def looks_like_pinyin(texts: Iterable[str]) -> bool:
    """Whether texts are pinyin: they contain no hanzi, and most words are Mandarin syllables."""
    text = " ".join(texts)
    if any(is_hanzi(character) for character in text):
        return False
    words, unknown = pinyin_tokens(text)
    return len(unknown) < len(words) / 2


def automatic_pinyin(tokens: Collection[str]) -> tuple[str, ...]:
    """pypinyin's reading of hanzi tokens, one syllable each; tokens without a reading are put in brackets."""
    syllables: list[str] = []
    run: list[str] = []
    for token in [*tokens, ""]:
        if token and len(token) == 1 and is_hanzi(token):
            run.append(token)
            continue
        syllables += _read_run("".join(run))
        run = []
        if token:
            syllables.append(f"[{token.lower()}]")
    return tuple(syllables)


def _read_run(hanzi: str) -> list[str]:
    try:
        return hanzi_to_pinyin(hanzi)
    except CorpusError:  # a rare character: read the others one by one
        if len(hanzi) == 1:
            return [f"[{hanzi}]"]
        return [syllable for character in hanzi for syllable in _read_run(character)]


def _punctuation(text: str) -> str:
    """Punctuation and symbols become spaces, except in tags and inside numbers and words."""
    kept = [range(*found.span()) for pattern in (_TAGS, _WITHIN) for found in pattern.finditer(text)]
    inside = {position for span in kept for position in span}
    return "".join(
        " " if unicodedata.category(character)[0] in "PS" and position not in inside else character
        for position, character in enumerate(text)
    )


def _numbers_in_hanzi(text: str) -> str:
    """Numbers as hanzi, in one of the ways in which the same number is written or said."""
    text = _OPERATORS.sub(lambda sign: "加" if sign[0] == "+" else "等于", text)
    text = with_zeros(numbers_to_hanzi(text))
    for pattern, usual in _SAME_NUMBER:
        text = pattern.sub(usual, text)
    return text


_APPLY: dict[str, Callable[[str], str]] = {
    WIDTH: partial(unicodedata.normalize, "NFKC"),
    TRADITIONAL: simplified,
    DIGITS: _numbers_in_hanzi,
    PUNCTUATION: _punctuation,
    CASE: str.lower,
}
