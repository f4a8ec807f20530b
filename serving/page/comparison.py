"""Compares a transcript with a reference text: errors as JSON, or as the page of the error analysis.

The alignments take seconds for long texts, so they are made in a process of their own, which alone loads the
dictionaries (``alignment``).
"""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import anyio
import anyio.to_process
from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, ConfigDict, Field

from serving.disconnection import unless_gone
from serving.work.child import stop_signals_blocked

MAX_CHARACTERS = 60_000  # of a text as it is sent; ``alignment`` limits its syllables
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
    return await _computed(request, _records, texts)


@router.post("/report", summary="The errors of a transcript as a page", response_class=HTMLResponse)
async def report(request: Request, texts: Annotated[Texts, Form()]) -> HTMLResponse:
    """The page that ``test.py --report`` and ``python -m analysis.report`` write, for one transcript."""
    return HTMLResponse(await _computed(request, _page, texts), headers=REPORT_HEADERS)


async def _computed(request: Request, compute: Callable[..., _Result], texts: Texts) -> _Result:
    """The result of a function of this module, as one of the requests that are processed.

    Raises:
        RequestError: the texts can't be compared, there are too many requests, or the client has gone.
    """
    with request.app.state.engine.admitted():
        work = in_process(compute, texts.reference, texts.pinyin, texts.hanzi)
        return await unless_gone(request, work)


def _records(*texts: str) -> dict[str, Any]:
    from serving.page.alignment import error_records  # here: the dictionaries take 60 MB

    return error_records(*texts)


def _page(*texts: str) -> str:
    from serving.page.alignment import error_page

    return error_page(*texts)


async def in_process(compute: Callable[..., _Result], *arguments: Any) -> _Result:
    """The result of a function in another process, which is killed if the caller is cancelled."""
    async with _one_at_a_time:
        # The process may start now. Other threads still get the service's signals.
        with stop_signals_blocked():
            return await anyio.to_process.run_sync(compute, *arguments, cancellable=True)
