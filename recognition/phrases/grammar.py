"""Parses a phrase file: the syntax tree of each phrase, the lists of its slots, and pronunciations.

::

    # comment
    打开[客厅|卧室]的灯              one of several
    (请)关灯                         optional
    <房间>的灯调到<亮度:数字 0-100>   a slot and a number, named 房间 and 亮度 in the result
    <房间> = 客厅 | 主卧             what the slot may be
    重庆路 = chong2 qing4 lu4        pronunciation of a word, in all phrases; also of hey siri, WiFi
    重庆<TAB>chong2 qing4            pronunciation of a whole phrase

Full-width brackets, bars, digits and spaces are the same as ordinary ones.
"""

import re
import string
from dataclasses import dataclass, field
from pathlib import Path

from recognition.phrases.pronunciation import MOST_TONELESS
from utils.errors import PhraseError, require
from utils.files import read_text
from utils.mandarin.pinyin import has_tone
from utils.mandarin.typed_pinyin import read_pronunciation

NUMBER_NAMES = ("数字", "number")
LARGEST_NUMBER = 10**8  # end of a range
MAX_NESTING = 20  # brackets inside brackets
_HINT = "one phrase a line, e.g. 打开[客厅|卧室]的灯, (请)关灯, 温度<数字 16-30>度"
_TOKEN = re.compile(r"[\[\]()|<>=]|[^\[\]()|<>=]+")
_CLOSING = {"[": "]", "(": ")"}
_NUMBER = re.compile(rf"({'|'.join(NUMBER_NAMES)})\s*(\d{{1,9}})\s*[-–~]\s*(\d{{1,9}})", re.IGNORECASE)
_NAME = re.compile(r"[^\W\d][\w ]*")
_WORD = re.compile(r"[^\W_]+(?: [^\W_]+)*")
# Brackets, letters, digits and others; not ，？！, which are left in the text of a phrase.
_FULL_WIDTH = {0x3000: " "} | {
    0xFEE0 + ord(each): each for each in f"#():<=>[]|-~{string.digits}{string.ascii_letters}"
}


@dataclass(frozen=True)
class Text:
    """Fixed text."""

    text: str


@dataclass(frozen=True)
class Sequence:
    """Parts one after the other; none for an empty alternative."""

    parts: "tuple[Part, ...]"


@dataclass(frozen=True)
class Choice:
    """One of several alternatives."""

    options: tuple[Sequence, ...]


@dataclass(frozen=True)
class Slot:
    """One item of a named list; its value has the key ``name`` in the result."""

    name: str
    list_name: str


@dataclass(frozen=True)
class Number:
    """A whole number from ``low`` to ``high``; its value has the key ``name`` in the result."""

    name: str
    low: int
    high: int


Part = Text | Sequence | Choice | Slot | Number


@dataclass(frozen=True)
class PhraseRule:
    """A phrase with its grammar.

    Attributes:
        number: number of the line in the file, from 1.
        content: syntax tree of the phrase.
        pinyin: syllables of the whole phrase, if the line gives them; otherwise ().
    """

    number: int
    content: Choice
    pinyin: tuple[str, ...] = ()


@dataclass(frozen=True)
class Grammar:
    """A phrase file.

    Attributes:
        source: name of the file, for messages.
        lines: the phrases.
        lists: items of each named slot.
        words: pronunciations of words: each word → one or more syllable sequences.
    """

    source: str
    lines: tuple[PhraseRule, ...]
    lists: dict[str, PhraseRule] = field(default_factory=dict)
    words: dict[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)

    def where(self, line: int) -> str:
        """The place of a line, for messages."""
        return f"{self.source}:{line}"


def read_grammar(path: str | Path) -> Grammar:
    """Read a phrase file.

    Args:
        path: UTF-8 text.

    Raises:
        PhraseError: the file can't be read or holds no phrase, or a line is wrong; the line is named.
    """
    return parse_grammar(read_text(path, "the phrases", PhraseError), str(path))


def parse_grammar(text: str, source: str = "phrases") -> Grammar:
    """Parse the text of a phrase file.

    Args:
        text: the lines; see ``docs/phrases.md`` for their form.
        source: name of the text, for messages.

    Raises:
        PhraseError: there is no phrase, or a line is wrong; the line is named.
    """
    lines: list[PhraseRule] = []
    lists: dict[str, PhraseRule] = {}
    words: dict[str, tuple[tuple[str, ...], ...]] = {}
    for number, raw in enumerate(re.split("\r\n|\r|\n", text), start=1):
        line, where = raw.translate(_FULL_WIDTH).partition("#")[0].strip(), f"{source}:{number}"
        content, _, pinyin = (part.strip() for part in line.partition("\t"))
        if not line:
            continue
        if "=" not in content:
            syllables = _read_pinyin(content, pinyin, where) if pinyin else ()
            if syllables and not set("[]()|<>").isdisjoint(content):
                raise PhraseError(
                    "pinyin beside a phrase with a grammar",
                    where=where,
                    hint="give the pronunciation of a word in a line of its own: 重庆路 = chong2 qing4 lu4",
                )
            lines.append(PhraseRule(number, _Parser(content, where).parse(), syllables))
        elif content.startswith("<"):
            name, definition = _list_definition(line, where)
            if name in lists:
                raise PhraseError(
                    f"the list <{name}> is defined twice",
                    where=where,
                    hint=f"write all items in one line: <{name}> = … | …",
                )
            lists[name] = PhraseRule(number, _Parser(definition, where).parse())
        else:
            word, syllables = _word_definition(line, where)
            words[word] = tuple(dict.fromkeys((*words.get(word, ()), syllables)))
    require(lines, "there is no phrase in the file", where=source, hint=_HINT, error=PhraseError)
    return Grammar(source, tuple(lines), lists, words)


def _list_definition(line: str, where: str) -> tuple[str, str]:
    left, _, right = (part.strip() for part in line.partition("="))
    name = left[1:-1].strip()
    if not left.endswith(">") or not _NAME.fullmatch(name) or not right:
        raise PhraseError(
            f"'{line}' is not the definition of a list",
            where=where,
            hint="define a list like <房间> = 客厅 | 卧室",
        )
    if name.lower() in NUMBER_NAMES:
        raise PhraseError(
            f"the name <{name}> is reserved for numbers",
            where=where,
            hint=f"choose another name; for numbers write <{name} 0-100> in a phrase",
        )
    return name, right


def _word_definition(line: str, where: str) -> tuple[str, tuple[str, ...]]:
    word, _, pinyin = (part.strip() for part in line.partition("="))
    if not _WORD.fullmatch(word):
        raise PhraseError(
            f"'{word}' before '=' is neither a word nor a list",
            where=where,
            hint="a word and its pinyin: 重庆路 = chong2 qing4 lu4, or a list: <房间> = 客厅 | 卧室",
        )
    return word, _read_pinyin(word, pinyin, where)


def _read_pinyin(text: str, pinyin: str, where: str) -> tuple[str, ...]:
    syllables = read_pronunciation(text, pinyin, where, PhraseError)
    toneless = [syllable for syllable in syllables if not has_tone(syllable)]
    if len(toneless) > MOST_TONELESS:
        raise PhraseError(
            f"'{text}' has {len(toneless)} syllables without a tone, more than {MOST_TONELESS}",
            where=where,
            hint=f"add the tones, e.g. {toneless[0]}1",
        )
    return syllables


class _Parser:
    """Recursive descent over the tokens of a line."""

    def __init__(self, text: str, where: str):
        self._tokens = [token for token in _TOKEN.findall(text) if token.strip()]
        self._index, self._where, self._depth = 0, where, 0

    def parse(self) -> Choice:
        content = self._choice()
        if self._index < len(self._tokens):
            raise self._error(f"'{self._tokens[self._index]}' closes nothing")
        return content

    def _choice(self) -> Choice:
        options = [self._sequence()]
        while self._next_is("|"):
            self._index += 1
            options.append(self._sequence())
        return Choice(tuple(options))

    def _sequence(self) -> Sequence:
        parts: list[Part] = []
        while self._index < len(self._tokens) and self._tokens[self._index] not in "])|":
            token = self._tokens[self._index]
            self._index += 1
            if token in _CLOSING:
                parts.append(self._group(token))
            elif token == "<":
                parts.append(self._reference())
            elif token in ">=":
                raise self._error(f"'{token}' is not allowed here")
            else:
                parts.append(Text(token))
        return Sequence(_stripped(parts))

    def _group(self, opening: str) -> Choice:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise self._error(f"more than {MAX_NESTING} brackets inside each other")
        content = self._choice()
        if not self._next_is(_CLOSING[opening]):
            raise self._error(f"'{opening}' is not closed by '{_CLOSING[opening]}'")
        self._index += 1
        self._depth -= 1
        return Choice((*content.options, Sequence(()))) if opening == "(" else content

    def _reference(self) -> Slot | Number:
        if self._index + 1 >= len(self._tokens) or self._tokens[self._index + 1] != ">":
            raise self._error("'<' needs a name and '>'")
        label, colon, target = (part.strip() for part in self._tokens[self._index].partition(":"))
        self._index += 2
        target = target if colon else label
        if number := _NUMBER.fullmatch(target):
            low, high = int(number[2]), int(number[3])
            if low > high or high > LARGEST_NUMBER:
                raise self._error(f"the range {low}-{high} is empty or above {LARGEST_NUMBER:,}")
            target, name = number[1], label if colon else number[1]
            content: Slot | Number = Number(name, low, high)
        elif target.lower() in NUMBER_NAMES:
            raise self._error(f"<{target}> has no range", f"write e.g. <{target} 0-100>")
        else:
            name = label
            content = Slot(name, target)
        if not (_NAME.fullmatch(name) and _NAME.fullmatch(target)):
            raise self._error(
                f"'<{label}{colon}{target}>' is not the name of a slot", "e.g. <房间>, <数字 0-100>"
            )
        return content

    def _next_is(self, token: str) -> bool:
        return self._index < len(self._tokens) and self._tokens[self._index] == token

    def _error(self, message: str, hint: str = _HINT) -> PhraseError:
        return PhraseError(message, where=self._where, hint=hint)


def _stripped(parts: list[Part]) -> tuple[Part, ...]:
    """The same parts without white space at both ends."""
    if parts and isinstance(parts[0], Text):
        parts[0] = Text(parts[0].text.lstrip())
    if parts and isinstance(parts[-1], Text):
        parts[-1] = Text(parts[-1].text.rstrip())
    return tuple(parts)
