"""Normalises transcripts by rules that the user chooses, and splits them into tokens.

Two transcripts of the same words can differ in how they are written. Each rule removes one such difference:
full width, traditional characters, numbers, punctuation, case. The report shows how many lines each changes.
"""

import importlib.util
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable
from functools import cache, partial
from typing import Any

from utils.errors import ConfigError, CorpusError
from utils.mandarin.numerals import numbers_to_hanzi
from utils.mandarin.pinyin import hanzi_to_pinyin, is_hanzi, normalise_syllable

WIDTH, TRADITIONAL, DIGITS, PUNCTUATION, CASE = "width", "traditional", "digits", "punctuation", "case"
# In the order in which they are applied: numbers before punctuation, which removes decimal points and %.
RULES = (WIDTH, TRADITIONAL, DIGITS, PUNCTUATION, CASE)
DEFAULT_RULES = (WIDTH, PUNCTUATION, CASE)  # if the user names none
ALL, NONE = "all", "none"
CONVERTER = "opencc"

_TAG = r"<[A-Za-z_/|-]+>|\[[A-Za-z_/|-]+\]"  # <unk>, [noise]: tags between words
_TOKEN = re.compile(
    rf"{_TAG}|[〇㐀-䶿一-鿿豈-﫿\U00020000-\U000323af]|[^\s〇㐀-䶿一-鿿豈-﫿\U00020000-\U000323af]+"
)
_TAGS = re.compile(_TAG)
_WITHIN = re.compile(r"(?<=\d)[.,:](?=\d)|(?<=[A-Za-z])['’](?=[A-Za-z])|(?<=\d)%")


def can_convert_traditional() -> bool:
    """Whether OpenCC is installed; it is optional."""
    return importlib.util.find_spec(CONVERTER) is not None


def rules_of(text: str) -> tuple[str, ...]:
    """The rules named on a command line: ``width,case``, ``all``, ``none``.

    ``all`` does not include ``traditional`` if OpenCC is not installed.

    Raises:
        ConfigError: an unknown rule, or ``traditional`` without OpenCC.
    """
    if text == NONE:
        return ()
    if text == ALL:
        return tuple(rule for rule in RULES if rule != TRADITIONAL or can_convert_traditional())
    requested = [rule.strip() for rule in text.split(",")]
    unknown = [rule for rule in requested if rule not in RULES]
    if unknown:
        raise ConfigError(
            f"unknown normalisation '{unknown[0]}'", hint=f"known: {', '.join(RULES)}; {ALL}, {NONE}"
        )
    if TRADITIONAL in requested and not can_convert_traditional():
        raise ConfigError(
            "traditional characters cannot be converted: OpenCC is not installed",
            hint="pip install opencc, or leave out this rule",
        )
    return tuple(rule for rule in RULES if rule in requested)


def normalise(text: str, rules: Collection[str]) -> str:
    """Apply rules to a text, in the order of :data:`RULES`."""
    for rule in RULES:
        if rule in rules:
            text = _APPLY[rule](text)
    return text


def changes(text: str, rule: str) -> bool:
    """Whether a rule changes a text; spaces do not count.

    Without OpenCC, traditional characters are those in Big5 that are not in GB 2312.
    """
    if rule == TRADITIONAL and not can_convert_traditional():
        return any(_looks_traditional(character) for character in text)
    return "".join(_APPLY[rule](text).split()) != "".join(text.split())


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


@cache
def _converter() -> Any:
    return importlib.import_module(CONVERTER).OpenCC("t2s")


def _looks_traditional(character: str) -> bool:
    return is_hanzi(character) and not _encodes(character, "gb2312") and _encodes(character, "big5")


def _encodes(character: str, encoding: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


_APPLY: dict[str, Callable[[str], str]] = {
    WIDTH: partial(unicodedata.normalize, "NFKC"),
    TRADITIONAL: lambda text: _converter().convert(text),
    DIGITS: numbers_to_hanzi,
    PUNCTUATION: _punctuation,
    CASE: str.lower,
}
