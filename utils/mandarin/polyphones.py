"""Corrects the readings of polyphones (多音字) in pypinyin's reading of a sentence, by rules on the context.

pypinyin cuts a text into the longest known phrases from the left. A phrase may therefore cross a word
boundary (维护|发展 is read as 维 护发 展), and a character outside all phrases gets its most frequent reading
(慢慢地 di4). The rules are regular expressions for the text before and after a character, in
``polyphones.tsv``.
"""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

RULES_PATH = Path(__file__).with_name("polyphones.tsv")
_ANY = "-"
_REACH = 12  # characters before the polyphone that a rule sees


class Rule(NamedTuple):
    """A reading, and patterns of the text before and after the character; None matches anything."""

    reading: str
    before: re.Pattern[str] | None
    after: re.Pattern[str] | None

    def matches(self, text: str, index: int) -> bool:
        """Whether the text before and after the character at ``index`` matches the rule."""
        if self.after and not self.after.match(text, index + 1):
            return False
        return not self.before or self.before.search(text, max(0, index - _REACH), index) is not None


@cache
def read_rules() -> dict[str, tuple[Rule, ...]]:
    """The rules for each character; the first that matches applies."""
    rules: dict[str, list[Rule]] = {}
    for line in RULES_PATH.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            character, reading, before, after = line.split("\t")
            patterns = [None if part == _ANY else re.compile(part) for part in (before, after)]
            rules.setdefault(character, []).append(Rule(reading, *patterns))
    return {character: tuple(found) for character, found in rules.items()}


def correct_polyphones(text: str, syllables: list[str]) -> list[str]:
    """The reading of a text, corrected by the rules.

    Args:
        text: hanzi.
        syllables: canonical, one per hanzi; unchanged where no rule matches.
    """
    return [reading_by_rule(text, index) or syllable for index, syllable in enumerate(syllables)]


def reading_by_rule(text: str, index: int) -> str | None:
    """The reading of the character at ``index`` by the rules; None if none matches or it is alone."""
    if len(text) > 1:  # a single character has no context
        for rule in read_rules().get(text[index], ()):
            if rule.matches(text, index):
                return rule.reading
    return None
