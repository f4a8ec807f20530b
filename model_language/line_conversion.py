"""Converts blocks of lines as ``convert.py`` writes them, in this process or in several.

A process calls :func:`prepare` once, then :func:`convert_block` for each of its blocks. The HTTP service
shares the JSON form of a line (:func:`line_values`).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model_language.converters.explanation import Explanation
from model_language.pinyin_to_hanzi import ConvertedLine, PinyinToHanzi
from model_language.registry import load_second_pass
from utils.errors import CorpusError, UserError

SHOWN_DIGITS = 4


_prepared: PinyinToHanzi | UserError | None = None  # of this process; an error if it can't be loaded


@dataclass(frozen=True)
class ConvertedBlock:
    """The conversion of a block of lines.

    Attributes:
        text: one output line for each input line.
        unread: number of words of Latin letters that are not pinyin.
        example: the file and the position of the first of them, and the word; empty for none.
    """

    text: str
    unread: int
    example: str


def prepare(
    model: Path, words: Path | None, strict: bool, recognised: bool, rescoring: float, language_model: Path
) -> None:
    """Load the converter.

    Args:
        model, words, strict, recognised: the arguments of :class:`PinyinToHanzi`.
        rescoring: weight of the language model that rescores the best conversions; 0: no rescoring.
        language_model: its run.

    An error is raised by the first :func:`convert_block`, because a worker process can't report one earlier.
    """
    global _prepared
    try:
        second_pass = load_second_pass(rescoring, language_model) if rescoring else None
        _prepared = PinyinToHanzi(model, words, strict, recognised, second_pass)
    except UserError as error:
        _prepared = error


def convert_block(
    n_best: int, as_json: bool, lines: Sequence[str], number: int, where: str
) -> ConvertedBlock:
    """Convert lines.

    Args:
        n_best: number of conversions of a line, separated by tabs; if there may be several, a tab in one is a
            space.
        as_json: a JSON object with conversions, scores and reasons instead.
        lines: text without line ends.
        number: number of the first line.
        where: name of the file, for messages.

    Raises:
        UserError: the converter can't be loaded.
        CorpusError: a line is not pinyin, and ``strict`` was set; it is named.
    """
    if isinstance(_prepared, UserError):
        raise _prepared
    assert _prepared
    to_hanzi = _prepared
    try:
        output = _output(to_hanzi, n_best, as_json, lines, number)
    except CorpusError as error:
        raise CorpusError(error.message, where=f"{where}, {error.where}", hint=error.hint) from error
    example = to_hanzi.example and f"{where}, {to_hanzi.example}"
    block = ConvertedBlock("".join(f"{line}\n" for line in output), to_hanzi.unread, example)
    to_hanzi.unread, to_hanzi.example = 0, ""
    return block


def _output(
    to_hanzi: PinyinToHanzi, n_best: int, as_json: bool, lines: Sequence[str], number: int
) -> list[str]:
    if n_best == 1 and not as_json:
        return to_hanzi.convert(lines, number)
    explained = to_hanzi.explain(lines, n_best, number, reasons=as_json)
    if as_json:
        return [json.dumps(line_values(line), ensure_ascii=False) for line in explained]
    # More than one conversion was asked for, and tabs separate them.
    return ["\t".join(way.hanzi.replace("\t", " ") for way in line.n_best) for line in explained]


def line_values(line: ConvertedLine) -> dict[str, Any]:
    """The JSON output for a line: whole texts, the sentences in it, and the words that are not pinyin."""
    return {
        "text": line.text,
        "n_best": [{"text": item.hanzi, "score": _rounded(item.score)} for item in line.n_best],
        "sentences": [_sentence(*sentence) for sentence in line.sentences],
        "unread": [{"text": word, "column": column} for word, column in line.unread],
    }


def _sentence(syllables: Sequence[str], explained: Explanation) -> dict[str, Any]:
    best = explained.n_best[0]
    return {
        "pinyin": list(syllables),
        "hanzi": best.hanzi,
        "score": _rounded(best.score),
        "alternatives": [
            {"hanzi": item.hanzi, "score": _rounded(item.score)} for item in explained.n_best[1:]
        ],
        "characters": [
            {
                "hanzi": character.hanzi,
                "pinyin": character.syllable,
                "confidence": _rounded(character.confidence),
                "runner_up": character.runner_up,
                "lead": {part: _rounded(value) for part, value in character.lead.items()},
            }
            for character in explained.characters
        ],
        "user_words": [{"word": span.word.text, "start": span.start} for span in explained.user_words],
    }


def _rounded(value: float) -> float:
    return round(value, SHOWN_DIGITS)
