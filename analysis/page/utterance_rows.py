"""Utterances of a report's systems in; short rows from which the page's script makes its table, out.

A page of 7,000 utterances has to open at once, so that what can be told from something else isn't written: a
row is a list in the order of :data:`COLUMNS`, names of kinds are numbers, outputs equal to the reference are
null, readings are what differs from the output, and a right place is the reference's token and syllable.
``templates/report_utterances.js`` reads them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from analysis.errors.attribution import ATTRIBUTIONS
from analysis.errors.confusions import NAMES
from analysis.errors.kinds import HANZI_ERRORS, SYLLABLE_ERRORS
from analysis.results.results import UtteranceRow

COLUMNS = (
    "id",
    "speaker",
    "seconds",
    "snr",
    "reference_pinyin",
    "pinyin",  # null: as the reference
    "reference_hanzi",
    "hanzi",  # null: as the reference
    "gold_hanzi",  # null: as the reference
    "syllable_errors",
    "syllable_tokens",
    "hanzi_errors",
    "hanzi_tokens",
    "n_best",  # [pinyin, hanzi, score]; the texts as in :func:`_beside`
    "times",  # milliseconds: start, end, start, end ...
    "places",  # right: [token, syllable]; wrong: see :func:`_place`
)
# Every name that a place may have, once; places hold its position in here, -1 for none.
WORDS = tuple(dict.fromkeys((*SYLLABLE_ERRORS, *HANZI_ERRORS, *ATTRIBUTIONS, *NAMES)))
_NUMBERS = {word: number for number, word in enumerate(WORDS)} | {"": -1}


def utterance_rows(utterances: Iterable[UtteranceRow]) -> list[list[Any]]:
    """A row for each utterance, ready for JSON."""
    return [_row(one) for one in utterances]


def _row(one: UtteranceRow) -> list[Any]:
    return [
        one.id,
        one.speaker,
        round(one.seconds, 2),
        None if one.snr is None else round(one.snr, 1),
        one.reference_pinyin,
        None if one.pinyin == one.reference_pinyin else one.pinyin,
        one.reference_hanzi,
        None if one.hanzi == one.reference_hanzi else one.hanzi,
        None if one.gold_hanzi == one.reference_hanzi else one.gold_hanzi,
        one.syllable_errors,
        one.syllable_tokens,
        one.hanzi_errors,
        one.hanzi_tokens,
        [
            [_beside(one.pinyin, pinyin), _beside(one.hanzi, hanzi), round(score, 3)]
            for pinyin, hanzi, score in one.n_best
        ],
        [round(1000 * second) for span in one.times for second in span],
        [_place(place) for place in one.places],
    ]


def _beside(first: str, text: str) -> list[Any]:
    """[characters alike at the start, characters alike at the end, what is between] of another text."""
    shorter = min(len(first), len(text))
    start = next((n for n in range(shorter) if first[n] != text[n]), shorter)
    end = next((n for n in range(shorter - start) if first[-1 - n] != text[-1 - n]), shorter - start)
    return [start, end, text[start : len(text) - end]]


def _place(place: tuple[str, ...]) -> list[Any]:
    """[reference, output, kind, said, heard, syllable kind, attribution, *confusions]; words are numbers."""
    token, output, kind, said, heard, difference, attribution, tags = place
    if token == output and said == heard and not kind and not attribution:
        return [token, said] if said else [token]
    named = [_NUMBERS[tag] for tag in tags.split(",") if tag]
    return [
        token,
        output,
        _NUMBERS[kind],
        said,
        heard,
        _NUMBERS[difference],
        _NUMBERS[attribution],
        *named,
    ]
