"""Expands the syntax trees of a phrase file to all phrases, with their slots and spoken forms."""

import difflib
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from recognition.phrases.grammar import Choice, Grammar, Number, Part, Sequence, Slot, Text
from utils.errors import PhraseError
from utils.mandarin.numerals import DIGITS, LONGEST_CARDINAL, cardinal, number_readings
from utils.mandarin.verbalisation import numbers_to_hanzi

MOST_PHRASES = 100_000  # a file that allows more is an error
MOST_LISTS_INSIDE = 20  # lists inside lists
_UNCOUNTED = 10**15  # a higher number of phrases is not counted further
_DIGITS = re.compile(r"\d+(?:\.\d+)?%?")


@dataclass(frozen=True)
class Expansion:
    """A phrase, or a part of one, without grammar.

    Attributes:
        pieces: each text with its spoken forms, in hanzi or in words with a pronunciation of their own.
        slots: name and value of each slot, in the order of the text.
        number: value of a part that is only a number; otherwise None.
    """

    pieces: tuple[tuple[str, tuple[str, ...]], ...] = ()
    slots: tuple[tuple[str, str | int], ...] = ()
    number: int | None = None

    @cached_property
    def text(self) -> str:
        """The phrase as it is written."""
        return "".join(text for text, _ in self.pieces).strip()

    def spoken(self) -> Iterator[str]:
        """The spoken forms of the phrase, the usual one first."""
        for ways in itertools.product(*(ways for _, ways in self.pieces)):
            yield "".join(ways)


def expand(grammar: Grammar) -> Iterator[tuple[int, Expansion]]:
    """All phrases of a file with their line numbers.

    Raises:
        PhraseError: a list is unknown, contains itself or is used twice in a phrase under one name, there are
            more than :data:`MOST_PHRASES`, or a phrase may be empty.
    """
    expander = _Expander(grammar)
    for line in (*grammar.lists.values(), *grammar.lines):
        expander.check(line.content, line.number)
    total = 0
    for line in grammar.lines:
        total += (count := expander.count(line.content))
        if total > MOST_PHRASES:
            raise PhraseError(
                f"more than {MOST_PHRASES:,} phrases with this line, which allows {count:,}",
                where=grammar.where(line.number),
                hint="use fewer alternatives, smaller ranges of numbers, or several files",
            )
    for line in grammar.lines:
        for expansion in expander.expand(line.content):
            if not expansion.text:
                raise PhraseError(
                    "the phrase may be empty",
                    where=grammar.where(line.number),
                    hint="make at least one part necessary",
                )
            yield line.number, expansion


class _Expander:
    """Checks, counts and expands syntax trees; the items of each list are expanded once."""

    def __init__(self, grammar: Grammar):
        self._grammar, self._lists = grammar, grammar.lists
        self._items: dict[str, list[Expansion]] = {}
        # Of each list: a list that refers twice to another would double the work at each level.
        self._slot_names: dict[str, frozenset[str]] = {}
        self._depths: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self._words = sorted(grammar.words, key=len, reverse=True)

    def check(self, part: Part, line: int, inside: tuple[str, ...] = ()) -> frozenset[str]:
        """The names of the slots in a part.

        Args:
            part: checked with the lists that it refers to.
            line: number of the line, for messages.
            inside: the lists that refer to each other down to this part.

        Raises:
            PhraseError: see :func:`expand`.
        """
        where = self._grammar.where(line)
        match part:
            case Number(name=name):
                return frozenset((name,))
            case Slot(name=name, list_name=list_name):
                if list_name not in self._lists:
                    raise PhraseError(
                        f"the list <{list_name}> is unknown", where=where, hint=self._similar(list_name)
                    )
                if list_name in inside:
                    raise PhraseError(
                        f"the list <{list_name}> contains itself",
                        where=where,
                        hint="a list can't contain itself, also not through other lists",
                    )
                if list_name not in self._slot_names and len(inside) < MOST_LISTS_INSIDE:
                    inner = self._lists[list_name]
                    names = self.check(inner.content, inner.number, (*inside, list_name))
                    self._slot_names[list_name] = names
                    depths = (self._depths[each] for each in _lists_of(inner.content))
                    self._depths[list_name] = 1 + max(depths, default=0)
                if len(inside) + self._depths.get(list_name, 1) > MOST_LISTS_INSIDE:
                    raise PhraseError(
                        f"more than {MOST_LISTS_INSIDE} lists inside each other",
                        where=where,
                        hint="write the items of some of them in one list",
                    )
                return self._union(frozenset((name,)), self._slot_names[list_name], where)
            case Choice(options=options):
                return frozenset().union(*(self.check(option, line, inside) for option in options))
            case Sequence(parts=parts):
                names = frozenset()
                for inner in parts:
                    names = self._union(names, self.check(inner, line, inside), where)
                return names
        return frozenset()

    def count(self, part: Part) -> int:
        """Number of expansions of a part; numbers above ``_UNCOUNTED`` are not exact."""
        match part:
            case Choice(options=options):
                return min(sum(map(self.count, options)), _UNCOUNTED)
            case Sequence(parts=parts):
                product = 1
                for inner in parts:
                    product = min(product * self.count(inner), _UNCOUNTED)
                return product
            case Slot(list_name=list_name):
                if list_name not in self._counts:
                    self._counts[list_name] = self.count(self._lists[list_name].content)
                return self._counts[list_name]
            case Number(low=low, high=high):
                return high - low + 1
        return 1

    def expand(self, part: Part) -> Iterator[Expansion]:
        """All expansions of a part."""
        match part:
            case Text(text=text):
                yield Expansion(tuple(self._pieces(text)))
            case Number(name=name, low=low, high=high):
                for number in range(low, high + 1):
                    yield Expansion(((cardinal(number), number_readings(number)),), ((name, number),), number)
            case Slot(name=name, list_name=list_name):
                if list_name not in self._items:
                    self._items[list_name] = list(self.expand(self._lists[list_name].content))
                for item in self._items[list_name]:
                    value = item.text if item.number is None else item.number
                    yield Expansion(item.pieces, ((name, value), *item.slots), item.number)
            case Choice(options=options):
                for option in options:
                    yield from self.expand(option)
            case Sequence(parts=(only,)):
                yield from self.expand(only)
            case Sequence(parts=parts):
                for expansions in itertools.product(*map(self.expand, parts)):
                    yield Expansion(
                        tuple(itertools.chain.from_iterable(each.pieces for each in expansions)),
                        tuple(itertools.chain.from_iterable(each.slots for each in expansions)),
                    )

    def _pieces(self, text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Text cut at its numbers in digits; a digit in a word with a pronunciation (5G) is no number."""
        words = "|".join(map(re.escape, self._words))
        pattern = re.compile(f"{words}|({_DIGITS.pattern})" if words else f"({_DIGITS.pattern})")
        start = 0
        for found in pattern.finditer(text):
            if found[1]:
                before = text[start : found.start()]
                yield before, (before,)
                yield found[1], spoken_numbers(found[1], text[found.end() :])
                start = found.end()
        yield text[start:], (text[start:],)

    def _similar(self, name: str) -> str:
        """A hint with the most similar list, or how to define one."""
        found = difflib.get_close_matches(name, self._lists, n=1, cutoff=0.4)
        return f"did you mean <{found[0]}>?" if found else f"define it in a line: <{name}> = … | …"

    def _union(self, names: frozenset[str], others: frozenset[str], where: str) -> frozenset[str]:
        if twice := names & others:
            name = min(twice)
            raise PhraseError(
                f"<{name}> stands twice in a phrase",
                where=where,
                hint=f"give each a name of its own: <a:{name}> and <b:{name}>",
            )
        return names | others


def _lists_of(part: Part) -> Iterator[str]:
    """The names of the lists that a part refers to directly."""
    match part:
        case Slot(list_name=list_name):
            yield list_name
        case Choice(options=inner) | Sequence(parts=inner):
            for each in inner:
                yield from _lists_of(each)


def spoken_numbers(digits: str, following: str) -> tuple[str, ...]:
    """The spoken forms of a number that is written in digits, the usual one first.

    Args:
        digits: such as ``25``, ``3.5``, ``10%`` or ``007``.
        following: the text after it: a number before 年 may be a year.
    """
    year = "年" if following.startswith("年") else ""
    usual = numbers_to_hanzi(digits + year).removesuffix(year)
    if not digits.isdecimal():
        return (usual,)
    if digits[0] == "0" or len(digits) > LONGEST_CARDINAL:
        return tuple(dict.fromkeys((usual, usual.replace(DIGITS[1], "幺"))))
    return tuple(dict.fromkeys((usual, *number_readings(int(digits)))))
