"""Writes the numbers in recognised hanzi as digits: 一百二十三 → 123, for a text or a whole segment.

The package wetext does it with the inverse text normalisation grammar of WeTextProcessing, which leaves
idioms and words such as 一起 unchanged. It also abbreviates units, currencies and times of day (千米 → km).
Such a replacement is not taken: its number stays in hanzi. So do whole dates and common fixed expressions.
"""

import difflib
import importlib
import re
import threading
from dataclasses import replace
from functools import cache
from typing import Any

from utils.errors import ConfigError
from utils.hypotheses.recognition import Ending, Segment
from utils.hypotheses.transcript_formats import syllable_texts

_NUMBER = re.compile(r"[\d.:/%~-]+")
_QUARTER = "刻"  # 九点一刻 is not 9.1刻
_FRACTION = "分之"  # in the hanzi of each number with a slash that is no date
# Expressions with numbers that the grammar does not know; they stay in hanzi.
_FIXED = re.compile(
    "三三两两|七零八落|三六九等|三十六计|三十六策|十万火急|十有八九|八九不离十|十室九空|一目十行|一暴十寒|一曝十寒"
    "|以一当十|略知一二|闻一知十|举十知九|五风十雨|五十步笑百步|正经八百"
)
_LOCK = threading.Lock()  # the grammar is not made for several threads


def with_digits(segment: Segment | Ending) -> Segment | Ending:
    """The segment with numbers as digits; the first syllable of a number has its text, the others have none.

    Raises:
        ConfigError: the package ``wetext`` is missing.
    """
    if isinstance(segment, Ending):
        return segment
    texts = syllable_texts(segment)
    hanzi = "".join(texts)
    written = numbers_as_digits(hanzi) if segment.best.hanzi else hanzi
    if written == hanzi:
        return segment
    starts = [index for index, text in enumerate(texts) for _ in text]  # of each character: its syllable
    labels = [""] * len(texts)
    for kind, begin, end, first, last in difflib.SequenceMatcher(None, hanzi, written, False).get_opcodes():
        if kind == "equal":
            for offset in range(end - begin):
                labels[starts[begin + offset]] += written[first + offset]
        else:
            labels[starts[min(begin, len(starts) - 1)]] += written[first:last]
    return replace(segment, labels=tuple(labels))


def numbers_as_digits(text: str) -> str:
    """The text with numbers as digits.

    Raises:
        ConfigError: the package ``wetext`` is missing.
    """
    with _LOCK:
        written = _normalizer().normalize(text)
    parts = []
    fixed = [match.span() for match in _FIXED.finditer(text)]
    for kind, begin, end, first, last in difflib.SequenceMatcher(None, text, written, False).get_opcodes():
        is_number = _NUMBER.fullmatch(written[first:last]) and text[end : end + 1] != _QUARTER
        is_number = is_number and ("/" not in written[first:last] or _FRACTION in text[begin:end])
        is_number = is_number and not any(start <= begin < stop for start, stop in fixed)
        parts.append(written[first:last] if kind == "equal" or is_number else text[begin:end])
    return "".join(parts)


@cache
def _normalizer() -> Any:
    try:
        wetext: Any = importlib.import_module("wetext")
    except ImportError as error:
        raise ConfigError(
            "numbers as digits need the package wetext", hint="pip install -r requirements/serve.txt"
        ) from error
    return wetext.Normalizer(lang="zh", operator="itn")
