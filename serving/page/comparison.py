"""Compares a transcript with a reference text: errors as JSON, or as the page of the error analysis.

The alignments take seconds for long texts, so they are made in a process of their own.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

import anyio
import anyio.to_process
import anyio.to_thread
from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, ConfigDict, Field

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
from serving.disconnection import unless_gone
from serving.errors import RequestError
from serving.work.child import stop_signals_blocked
from utils.metrics import count_errors, count_toneless_errors

MAX_TOKENS = 6_000  # of a text: about 25 minutes of speech, and a few seconds of work
MAX_CHARACTERS = 10 * MAX_TOKENS  # of a text as it is sent
ID = "transcript"
TONELESS = "toneless"
# The report has its scripts in itself. In a sandbox they reach neither this server nor its data in a browser.
REPORT_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data:; media-src data:; base-uri 'none'; frame-ancestors 'none'; sandbox allow-scripts",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}

router = APIRouter(prefix="/v1/comparison", tags=["comparison"])
_one_at_a_time = anyio.CapacityLimiter(1)
_Result = TypeVar("_Result")


class Texts(BaseModel):
    """A transcript and what it should have been.

    Attributes:
        reference: hanzi or pinyin; digits and punctuation don't matter.
        pinyin: recognised syllables, separated by spaces.
        hanzi: recognised characters; empty: only syllables are compared.
    """

    model_config = ConfigDict(extra="forbid")

    reference: str = Field(max_length=MAX_CHARACTERS, examples=["今天天气很好。"])
    pinyin: str = Field(max_length=MAX_CHARACTERS, examples=["jin1 tian1 tian1 qi4 hen2 hao3"])
    hanzi: str = Field("", max_length=MAX_CHARACTERS, examples=["今天天气很好"])


@router.post("", summary="The errors of a transcript")
async def compare(request: Request, texts: Texts) -> dict[str, Any]:
    """Error rates, the alignment with the kind of each error, and what the kinds mean."""
    return await _computed(request, error_records, texts)


@router.post("/report", summary="The errors of a transcript as a page", response_class=HTMLResponse)
async def report(request: Request, texts: Annotated[Texts, Form()]) -> HTMLResponse:
    """The page that ``test.py --report`` and ``python -m analysis.report`` write, for one transcript."""
    return HTMLResponse(await _computed(request, error_page, texts), headers=REPORT_HEADERS)


async def _computed(
    request: Request, compute: Callable[[UtteranceResult, str], _Result], texts: Texts
) -> _Result:
    """The result of a function of this module, as one of the requests that are processed.

    Raises:
        RequestError: the texts can't be compared, there are too many requests, or the client has gone.
    """
    with request.app.state.engine.admitted():
        utterance, level = await anyio.to_thread.run_sync(utterance_of, texts)  # loads dictionaries at first
        return await unless_gone(request, in_process(compute, utterance, level))


async def in_process(compute: Callable[..., _Result], *arguments: Any) -> _Result:
    """The result of a function in another process, which is killed if the caller is cancelled."""
    async with _one_at_a_time:
        # The process may start now. Other threads still get the service's signals.
        with stop_signals_blocked():
            return await anyio.to_process.run_sync(compute, *arguments, cancellable=True)


def utterance_of(texts: Texts) -> tuple[UtteranceResult, str]:
    """The texts as tokens, and the level on which they are aligned: hanzi if both sides have them.

    Raises:
        RequestError: a text is empty or too long.
    """
    level = SYLLABLES if looks_like_pinyin([texts.reference]) or not texts.hanzi.strip() else HANZI
    rules = rules_of(ALL)
    if looks_like_pinyin([texts.reference]):
        true_hanzi, true_pinyin = (), pinyin_tokens(texts.reference)[0]
    else:
        true_hanzi = hanzi_tokens(normalise(texts.reference, rules))
        true_pinyin = automatic_pinyin(true_hanzi)
    pinyin, hanzi = pinyin_tokens(texts.pinyin)[0], hanzi_tokens(normalise(texts.hanzi, rules))
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


def error_records(utterance: UtteranceResult, level: str) -> dict[str, Any]:
    """The rates, each aligned token with the kind of its error, and sign and explanation of these kinds."""
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


def error_page(utterance: UtteranceResult, level: str) -> str:
    """The report of the error analysis as one self-contained HTML page."""
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
