"""A sentence and pypinyin's reading of it in; the reading with its polyphones (多音字) put right out.

pypinyin cuts a text into the longest phrases that it knows, from the left. So a phrase may be cut out of two
words (维护|发展 read as 维 护发 展), and what is no phrase gets the most frequent reading (慢慢地 di4).
``polyphones.tsv`` holds, for each such character, what its neighbours say about it.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

RULES_PATH = Path(__file__).with_name("polyphones.tsv")
_ANY = "-"
_REACH = 12  # characters that a rule looks back


class Rule(NamedTuple):
    """A reading, and what has to stand before and after the character; None is anything."""

    reading: str
    before: re.Pattern[str] | None
    after: re.Pattern[str] | None

    def fits(self, text: str, place: int) -> bool:
        """Whether the character at ``place`` stands as the rule wants it."""
        if self.after and not self.after.match(text, place + 1):
            return False
        return not self.before or self.before.search(text, max(0, place - _REACH), place) is not None


@cache
def read_rules() -> dict[str, tuple[Rule, ...]]:
    """The rules of each character, in their order."""
    rules: dict[str, list[Rule]] = {}
    for line in RULES_PATH.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            character, reading, before, after = line.split("\t")
            patterns = [None if part == _ANY else re.compile(part) for part in (before, after)]
            rules.setdefault(character, []).append(Rule(reading, *patterns))
    return {character: tuple(found) for character, found in rules.items()}


def corrected(text: str, syllables: list[str]) -> list[str]:
    """The reading of a text, put right by the rules.

    Args:
        text: hanzi.
        syllables: canonical, one a hanzi; what no rule fits stays.
    """
    rules = read_rules()
    read = list(syllables)
    if len(text) > 1:  # a character alone has no neighbours
        for place, character in enumerate(text):
            for rule in rules.get(character, ()):
                if rule.fits(text, place):
                    read[place] = rule.reading
                    break
    return read
