"""Writes a converted line as plain values for JSON, with alternatives, confidences and reasons.

``convert.py --json`` and the HTTP service share this schema.
"""

from collections.abc import Sequence
from typing import Any

from model_language.converters.explanation import Explanation
from model_language.pinyin_to_hanzi import ConvertedLine

SHOWN_DIGITS = 4


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
        "user_words": [{"word": span.word.hanzi, "start": span.start} for span in explained.user_words],
    }


def _rounded(value: float) -> float:
    return round(value, SHOWN_DIGITS)
