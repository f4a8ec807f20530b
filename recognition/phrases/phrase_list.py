"""Lists all phrases that a phrase file allows, each with its slots and pronunciations."""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recognition.phrases.expansion import Expansion, expand
from recognition.phrases.grammar import Grammar, read_grammar
from recognition.phrases.pronunciation import MOST_PRONUNCIATIONS, given_pronunciations, pronunciations


@dataclass(frozen=True)
class Phrase:
    """A phrase without grammar.

    Attributes:
        text: the phrase as the file writes it.
        line: number of its line in the file.
        slots: value of each named slot.
        pronunciations: syllable sequences, the usual one first.
    """

    text: str
    line: int
    slots: Mapping[str, str | int]
    pronunciations: tuple[tuple[str, ...], ...]


def read_phrases(path: str | Path) -> list[Phrase]:
    """All phrases that a file allows, each text with each set of slot values once.

    Raises:
        PhraseError: the file can't be read, or a line is wrong; the line is named.
    """
    return list_phrases(read_grammar(path))


def list_phrases(grammar: Grammar) -> list[Phrase]:
    """All phrases that a grammar allows; see :func:`read_phrases`."""
    words = {
        word: tuple(way for given in ways for way in given_pronunciations(given))
        for word, ways in grammar.words.items()
    }
    given = {line.number: given_pronunciations(line.pinyin) for line in grammar.lines if line.pinyin}
    found: dict[tuple[Any, ...], dict[tuple[str, ...], None]] = defaultdict(dict)
    lines: dict[tuple[Any, ...], int] = {}
    for line, expansion in expand(grammar):
        key = expansion.text, expansion.slots
        lines.setdefault(key, line)
        ways = given.get(line) or _pronunciations(expansion, words, grammar.where(line))
        found[key].update(dict.fromkeys(ways))
    return [
        Phrase(text, lines[text, slots], dict(slots), tuple(ways)) for (text, slots), ways in found.items()
    ]


def _pronunciations(
    expansion: Expansion, words: Mapping[str, tuple[tuple[str, ...], ...]], where: str
) -> Iterable[tuple[str, ...]]:
    """Pronunciations of all spoken forms, in turns: the usual ones of each form first."""
    forms = itertools.islice(expansion.spoken(), MOST_PRONUNCIATIONS)
    turns = itertools.zip_longest(*(pronunciations(spoken, words, where) for spoken in forms))
    found = (way for turn in turns for way in turn if way)
    return itertools.islice(found, MOST_PRONUNCIATIONS)
