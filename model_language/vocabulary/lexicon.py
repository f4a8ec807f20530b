"""The lexicon: which hanzi each tonal syllable may become, from pypinyin's dictionaries and training pairs.

For typed pinyin, converters choose only among these candidates; for recognised pinyin, some also consider the
hanzi of syllables that an acoustic model confuses with it. Candidates are looked up in this order; the first
step with a result is used:

1. the syllable itself: ``zhong1`` → 中 终 钟 …;
2. for an erhua syllable, the syllable without its r: ``huar1`` → the candidates of ``hua1``;
3. the same syllable in any tone: ``qing5`` without entries → the candidates of ``qing1`` … ``qing4``;
4. steps 2 and 3 together;
5. nothing: the converters write one :data:`UNREADABLE` for the syllable.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from utils.errors import RunError
from utils.files import write_text
from utils.mandarin.hanzi_readings import characters, phrases
from utils.mandarin.pinyin import is_syllable, normalise_syllable, tone_of, without_tone
from utils.run_folder.checksums import verified

UNREADABLE = "□"
"""Written for a syllable without known hanzi; one character, so that hanzi and syllables stay aligned."""

# 一 is read yi4 before tones 1–3; the dictionary of characters has only yi1 and yi2.
_SANDHI_READINGS = (("yi4", "一"),)
_TONES = "12345"


class Lexicon:
    """The hanzi that each canonical syllable (tone digit 1–5) may become.

    Args:
        readings: syllable → its hanzi; they are stored sorted by code point.
    """

    def __init__(self, readings: Mapping[str, Iterable[str]]):
        self._readings = {syllable: tuple(sorted(set(readings[syllable]))) for syllable in sorted(readings)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lexicon) and self._readings == other._readings

    __hash__: Any = None

    @property
    def syllables(self) -> tuple[str, ...]:
        """The syllables that have entries, sorted."""
        return tuple(self._readings)

    @property
    def hanzi(self) -> frozenset[str]:
        """All hanzi of all syllables."""
        return frozenset(character for group in self._readings.values() for character in group)

    def candidates(self, syllable: str) -> tuple[str, ...]:
        """The hanzi that ``syllable`` may become, looked up as in the module docstring; () if none."""
        for group in _relatives(syllable):
            found = {character for relative in group for character in self._readings.get(relative, ())}
            if found:
                return tuple(sorted(found))
        return ()

    def nearest(self, syllable: str) -> str | None:
        """The first syllable with entries in the same order: ``huar1`` → ``hua1``; None if none."""
        relatives = itertools.chain.from_iterable(_relatives(syllable))
        return next((relative for relative in relatives if relative in self._readings), None)

    def save(self, path: str | Path) -> None:
        """Write ``syllable<TAB>hanzi`` lines, the hanzi of a syllable without separator."""
        write_text(
            path, "".join(f"{syllable}\t{''.join(group)}\n" for syllable, group in self._readings.items())
        )

    @classmethod
    def load(cls, path: str | Path) -> Lexicon:
        """Read what :meth:`save` wrote.

        Raises:
            RunError: the file is missing, changed, not UTF-8, or a line is not ``syllable<TAB>hanzi``.
        """
        path = Path(path)
        if not path.is_file():
            raise RunError("the lexicon is missing", where=path, hint="train the language model again")
        try:
            lines = verified(path).read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise RunError("the lexicon is not UTF-8", where=path, hint="copy it again") from error
        readings: dict[str, str] = {}
        for number, line in enumerate(lines, start=1):
            syllable, tab, group = line.partition("\t")
            if not (syllable and tab and group) or syllable in readings:
                raise RunError(
                    f"not a line of a lexicon: {line!r}", where=f"{path}:{number}", hint="copy it again"
                )
            readings[syllable] = group
        return cls(readings)


def build_lexicon(pairs: Iterable[tuple[Iterable[str], str]] = ()) -> Lexicon:
    """A lexicon of the dictionary readings of all GB 2312 hanzi and of all pairs in the training text.

    Args:
        pairs: (syllables, hanzi) of equal length; corpora have labels that no dictionary contains.
    """
    readings: dict[str, set[str]] = {}
    aligned = (zip(syllables, sentence, strict=True) for syllables, sentence in pairs)
    for syllable, character in itertools.chain(
        _dictionary_readings(), itertools.chain.from_iterable(aligned)
    ):
        readings.setdefault(syllable, set()).add(character)
    return Lexicon(readings)


def gb2312_hanzi() -> tuple[str, ...]:
    """The 6,763 hanzi of GB 2312, in its order: rows 16–87 of the code table (the frequent ones first)."""
    cells = itertools.product(range(0xB0, 0xF8), range(0xA1, 0xFF))
    # Row 55 has five empty cells at its end.
    return tuple(filter(None, (bytes(cell).decode("gb2312", errors="ignore") for cell in cells)))


def _dictionary_readings() -> Iterator[tuple[str, str]]:
    covered = frozenset(gb2312_hanzi())
    for character in covered:
        for reading in characters()[ord(character)].split(","):
            if is_syllable(reading):
                yield normalise_syllable(reading), character
    # Phrases add readings that occur only in words, most of them neutral: the 西 of 东西.
    in_phrases = {
        (reading[0], character)
        for phrase, phrase_readings in phrases().items()
        if len(phrase) == len(phrase_readings)
        for character, reading in zip(phrase, phrase_readings, strict=True)
    }
    for reading, character in in_phrases:
        if character in covered and is_syllable(reading):
            yield normalise_syllable(reading), character
    yield from _SANDHI_READINGS


def _relatives(syllable: str) -> Iterator[tuple[str, ...]]:
    """Groups of syllables to look up, in the order of the module docstring."""
    yield (syllable,)
    if not is_syllable(syllable):
        return
    base, tone = without_tone(syllable), str(tone_of(syllable))
    plain = base[:-1] if base.endswith("r") and base != "er" else None
    if plain:
        yield (plain + tone,)
    yield tuple(base + other for other in _TONES)
    if plain:
        yield tuple(plain + other for other in _TONES)
