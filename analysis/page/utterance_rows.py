"""Packs the utterances of a system into short JSON rows, from which the page's script makes its table.

A page of 7,000 utterances must open quickly, so values that follow from others are left out. A row is a list
in the order of :data:`COLUMNS`. Names of kinds are numbers, outputs equal to the reference are null,
alternatives are differences from the output, and a correct token is the reference's token and syllable only.
``templates/report_alignment.js`` reads the rows.
"""

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
    "n_best",  # [pinyin, hanzi, score]; the texts as in :func:`_difference`
    "times",  # milliseconds: start, end, start, end ...
    "alignment",  # correct: [token, syllable]; wrong: see :func:`_short_token`
)
# All names that a token may have, once; tokens contain the positions in this list, -1 for no name.
WORDS = tuple(dict.fromkeys((*SYLLABLE_ERRORS, *HANZI_ERRORS, *ATTRIBUTIONS, *NAMES)))
_NUMBERS = {word: number for number, word in enumerate(WORDS)} | {"": -1}


def utterance_rows(utterances: Iterable[UtteranceRow]) -> list[list[Any]]:
    """A row for each utterance, ready for JSON."""
    return [
        [
            utterance.id,
            utterance.speaker,
            round(utterance.seconds, 2),
            None if utterance.snr is None else round(utterance.snr, 1),
            utterance.reference_pinyin,
            None if utterance.pinyin == utterance.reference_pinyin else utterance.pinyin,
            utterance.reference_hanzi,
            None if utterance.hanzi == utterance.reference_hanzi else utterance.hanzi,
            None if utterance.gold_hanzi == utterance.reference_hanzi else utterance.gold_hanzi,
            utterance.syllable_errors,
            utterance.syllable_tokens,
            utterance.hanzi_errors,
            utterance.hanzi_tokens,
            [
                [_difference(utterance.pinyin, pinyin), _difference(utterance.hanzi, hanzi), round(score, 3)]
                for pinyin, hanzi, score in utterance.n_best
            ],
            [round(1000 * second) for span in utterance.times for second in span],
            [_short_token(token) for token in utterance.alignment],
        ]
        for utterance in utterances
    ]


def _difference(output: str, text: str) -> list[Any]:
    """[characters in common at the start, in common at the end, text between them] of another text."""
    shorter = min(len(output), len(text))
    start = next((n for n in range(shorter) if output[n] != text[n]), shorter)
    end = next((n for n in range(shorter - start) if output[-1 - n] != text[-1 - n]), shorter - start)
    return [start, end, text[start : len(text) - end]]


def _short_token(fields: tuple[str, ...]) -> list[Any]:
    """[reference, output, kind, two syllables, syllable kind, attribution, *confusions], with numbers."""
    token, output, kind, true_syllable, syllable, syllable_kind, attribution, confusions = fields
    if token == output and true_syllable == syllable and not kind and not attribution:
        return [token, true_syllable] if true_syllable else [token]
    named = [_NUMBERS[name] for name in confusions.split(",") if name]
    numbers = (_NUMBERS[syllable_kind], _NUMBERS[attribution], *named)
    return [token, output, _NUMBERS[kind], true_syllable, syllable, *numbers]
