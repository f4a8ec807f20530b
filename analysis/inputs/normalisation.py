"""Texts of any system in; the same with width, punctuation, capitals, figures … made alike, and tokens, out.

Two transcripts that say the same can differ in what no listener hears. Each rule here takes one such
difference away; which are applied is the user's choice, and how many lines each would change is reported.
"""

from __future__ import annotations

import importlib.util
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable
from functools import cache
from typing import Any

from utils.errors import ConfigError, CorpusError
from utils.mandarin.numerals import numbers_to_hanzi
from utils.mandarin.pinyin import hanzi_to_pinyin, is_hanzi, normalise_syllable

WIDTH, TRADITIONAL, DIGITS, PUNCTUATION, CASE = "width", "traditional", "digits", "punctuation", "case"
# In the order in which they are applied: figures before their points and percent signs are gone.
RULES = (WIDTH, TRADITIONAL, DIGITS, PUNCTUATION, CASE)
DEFAULT_RULES = (WIDTH, PUNCTUATION, CASE)
ALL, NONE = "all", "none"
CONVERTER = "opencc"

_TAG = r"<[A-Za-z_/|-]+>|\[[A-Za-z_/|-]+\]"  # <unk>, [noise]: what systems write beside words
_TOKEN = re.compile(
    rf"{_TAG}|[〇㐀-䶿一-鿿豈-﫿\U00020000-\U000323af]|[^\s〇㐀-䶿一-鿿豈-﫿\U00020000-\U000323af]+"
)
_TAGS = re.compile(_TAG)
_WITHIN = re.compile(r"(?<=\d)[.,:](?=\d)|(?<=[A-Za-z])['’](?=[A-Za-z])|(?<=\d)%")


def can_convert_traditional() -> bool:
    """Whether OpenCC is installed; nothing of ours needs it."""
    return importlib.util.find_spec(CONVERTER) is not None


def rules_of(text: str) -> tuple[str, ...]:
    """The rules that a command line names: ``width,case``, ``all``, ``none``.

    ``all`` leaves ``traditional`` out where OpenCC isn't installed.

    Raises:
        ConfigError: an unknown rule, or ``traditional`` without OpenCC.
    """
    if text == NONE:
        return ()
    if text == ALL:
        return tuple(rule for rule in RULES if rule != TRADITIONAL or can_convert_traditional())
    asked = [rule.strip() for rule in text.split(",")]
    unknown = [rule for rule in asked if rule not in RULES]
    if unknown:
        hint = f"known: {', '.join(RULES)}; {ALL}, {NONE}"
        raise ConfigError(f"unknown normalisation '{unknown[0]}'", hint=hint)
    if TRADITIONAL in asked and not can_convert_traditional():
        what = "traditional characters can't be made simplified: OpenCC isn't installed"
        raise ConfigError(what, hint="pip install opencc, or leave this rule out")
    return tuple(rule for rule in RULES if rule in asked)


def normalise(text: str, rules: Collection[str]) -> str:
    """Apply rules to a text, in the order of :data:`RULES`."""
    for rule in RULES:
        if rule in rules:
            text = _APPLY[rule](text)
    return text


def changes(text: str, rule: str) -> bool:
    """Whether there is something in a text for a rule to do; spaces don't count.

    Without OpenCC, traditional characters are those that GB 2312 doesn't have and Big5 does.
    """
    if rule == TRADITIONAL and not can_convert_traditional():
        return any(_looks_traditional(character) for character in text)
    return "".join(_APPLY[rule](text).split()) != "".join(text.split())


def hanzi_tokens(text: str) -> tuple[str, ...]:
    """A text as tokens: each hanzi is one, each tag, and each run of anything else between spaces."""
    return tuple(_TOKEN.findall(text.replace("▁", " ")))


def pinyin_tokens(text: str) -> tuple[tuple[str, ...], list[str]]:
    """Written syllables as canonical ones, and those that are none; these stay as they are."""
    tokens, strange = [], []
    for word in text.replace("▁", " ").split():
        try:
            tokens.append(normalise_syllable(word))
        except CorpusError:
            tokens.append(f"[{word}]")
            strange.append(word)
    return tuple(tokens), strange


def looks_like_pinyin(texts: Iterable[str]) -> bool:
    """Whether texts are written in syllables: no hanzi, and most words are Mandarin syllables."""
    text = " ".join(texts)
    if any(is_hanzi(character) for character in text):
        return False
    words, strange = pinyin_tokens(text)
    return len(strange) < len(words) / 2


def read_aloud(tokens: Collection[str]) -> tuple[str, ...]:
    """pypinyin's reading of hanzi tokens, one syllable each; what has no reading is put in brackets."""
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
    except CorpusError:  # a rare character: the others are still read
        return [_read_one(character) for character in hanzi]


def _read_one(hanzi: str) -> str:
    try:
        return hanzi_to_pinyin(hanzi)[0]
    except CorpusError:
        return f"[{hanzi}]"


def _width(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _digits(text: str) -> str:
    return numbers_to_hanzi(text)


def _punctuation(text: str) -> str:
    """Punctuation and symbols become spaces, but for tags and for what is inside numbers and words."""
    kept = [range(*found.span()) for pattern in (_TAGS, _WITHIN) for found in pattern.finditer(text)]
    inside = {position for span in kept for position in span}
    return "".join(
        " " if unicodedata.category(character)[0] in "PS" and position not in inside else character
        for position, character in enumerate(text)
    )


def _traditional(text: str) -> str:
    return _converter().convert(text)


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
    WIDTH: _width,
    TRADITIONAL: _traditional,
    DIGITS: _digits,
    PUNCTUATION: _punctuation,
    CASE: str.lower,
}
