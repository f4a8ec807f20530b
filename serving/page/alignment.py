"""Aligns a transcript with a reference text and finds the kinds of the errors, as JSON or as a page."""

from collections.abc import Sequence
from typing import Any

from analysis.errors.align_all import AlignedToken, align_all
from analysis.errors.kinds import KINDS, readings_in_use
from analysis.inputs.normalisation import (
    ALL,
    automatic_pinyin,
    hanzi_tokens,
    looks_like_pinyin,
    normalise,
    pinyin_tokens,
    rules_of,
)
from analysis.inputs.utterance_results import (
    HANZI,
    LEVELS,
    SYLLABLES,
    SystemOutput,
    UtteranceResult,
    equal_tokens,
    one_per_token,
    tokens_of,
)
from analysis.page.report import report_page
from analysis.results.collect import collect_results
from serving.errors import RequestError
from utils.metrics import count_errors, count_toneless_errors

MAX_TOKENS = 6_000  # of a text: about 25 minutes of speech, and a few seconds of work
ID = "transcript"
TONELESS = "toneless"


def utterance_of(reference: str, recognised_pinyin: str, recognised: str) -> tuple[UtteranceResult, str]:
    """The texts as tokens, and the level on which they are aligned: hanzi if both sides have them.

    Args:
        reference, recognised_pinyin, recognised: see :class:`serving.page.comparison.Texts`.

    Raises:
        RequestError: a text is empty or too long.
    """
    level = SYLLABLES if looks_like_pinyin([reference]) or not recognised.strip() else HANZI
    rules = rules_of(ALL)
    if looks_like_pinyin([reference]):
        true_hanzi, true_pinyin = (), pinyin_tokens(reference)[0]
    else:
        true_hanzi = hanzi_tokens(normalise(reference, rules))
        true_pinyin = automatic_pinyin(true_hanzi)
    pinyin, hanzi = pinyin_tokens(recognised_pinyin)[0], hanzi_tokens(normalise(recognised, rules))
    if level == HANZI:
        true_pinyin = _with_recognised_readings(true_pinyin, true_hanzi, pinyin, hanzi)
    if not true_pinyin:
        raise RequestError(
            400,
            "there is no text to compare with",
            hint="hanzi, or pinyin separated by spaces",
            param="reference",
        )
    for name, tokens in (("reference", true_pinyin), ("pinyin", pinyin), ("hanzi", hanzi)):
        if len(tokens) > MAX_TOKENS:
            raise RequestError(
                400,
                f"more than {MAX_TOKENS:,} syllables",
                hint="compare a part, or files with: python -m analysis.report",
                param=name,
            )
    with_hanzi = (true_hanzi, hanzi) if level == HANZI else ((), ())
    return UtteranceResult(ID, "", 0.0, true_pinyin, pinyin, *with_hanzi), level


def _with_recognised_readings(
    true_pinyin: Sequence[str], true_hanzi: Sequence[str], pinyin: Sequence[str], hanzi: Sequence[str]
) -> tuple[str, ...]:
    """The syllables of the reference; a correct hanzi has the recognised syllable if that is a reading of it.

    pypinyin may choose another reading (还 hai2) than the speaker (huan2), which is no error.
    """
    shared, recognised = list(true_pinyin), one_per_token(pinyin, hanzi)
    if not recognised or len(true_pinyin) != len(true_hanzi):
        return tuple(true_pinyin)
    for position, other in equal_tokens(true_hanzi, hanzi):
        if recognised[other] in readings_in_use(true_hanzi[position]):
            shared[position] = recognised[other]
    return tuple(shared)


def error_records(*texts: str) -> dict[str, Any]:
    """The rates, each aligned token with the kind of its error, and sign and explanation of these kinds.

    Args:
        texts: see :func:`utterance_of`.

    Raises:
        RequestError: see :func:`utterance_of`.
    """
    utterance, level = utterance_of(*texts)
    (aligned,) = align_all([utterance], _levels(level))
    alignment = [_slot(token) for token in aligned.tokens(level)]
    occurring = {slot["kind"] for slot in alignment}
    return {
        "level": level,
        "rates": _rates(utterance, level),
        "alignment": alignment,
        "kinds": {
            kind.name: {"sign": kind.sign, "explanation": kind.explanation}
            for kind in KINDS
            if kind.name in occurring
        },
    }


def error_page(*texts: str) -> str:
    """The report of the error analysis as one self-contained HTML page; see :func:`error_records`."""
    utterance, level = utterance_of(*texts)
    system = SystemOutput(ID, [utterance])
    return report_page(collect_results([system], _levels(level), "files", "Transcript against the reference"))


def _levels(level: str) -> tuple[str, ...]:
    return LEVELS if level == HANZI else (SYLLABLES,)


def _slot(token: AlignedToken) -> dict[str, str | None]:
    return {
        "reference": token.pair.reference,
        "hypothesis": token.pair.hypothesis,
        "kind": token.kind,
        "reference_syllable": token.reference_syllable,
        "hypothesis_syllable": token.hypothesis_syllable,
    }


def _rates(utterance: UtteranceResult, level: str) -> list[dict[str, Any]]:
    syllables = tokens_of(utterance, SYLLABLES)
    counts = {SYLLABLES: count_errors(*syllables), TONELESS: count_toneless_errors(*syllables)}
    if level == HANZI:
        counts[HANZI] = count_errors(*tokens_of(utterance, HANZI))
    return [
        {"key": key, "errors": each.errors, "tokens": each.reference, "rate": each.rate}
        for key, each in counts.items()
    ]
