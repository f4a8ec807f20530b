"""Recognises an uploaded recording: ``/v1/audio/transcriptions``, and ``/v1/phrases`` for phrases of a list.

The first is compatible with OpenAI's interface: fields that have no meaning here are accepted. Additions of
this service are the fields ``digits``, ``channels`` and ``channel_names``, and ``pinyin`` and ``confidence``
in ``verbose_json``.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, File, Form, Request, UploadFile
from fastapi.responses import Response, StreamingResponse

from recognition.options import MIX, PHRASE_THRESHOLD, SEPARATE
from serving.disconnection import unless_gone
from serving.endpoints.files import PHRASES, TRANSCRIPTIONS, one_recording, saved_upload
from serving.endpoints.responses import MEDIA_TYPES, events, response_body, whole_text
from serving.errors import RequestError
from serving.work.engine import MIXED, Channels, Engine
from serving.work.models import Search
from utils.command.arguments import is_mandarin, split_names
from utils.hypotheses.digits import with_digits
from utils.hypotheses.recognition import Ending, Recognition
from utils.hypotheses.transcript_formats import segment_values

router = APIRouter(tags=["recognition"])
LONGEST_PROMPT = 50_000  # characters
_EXAMPLE = {
    "text": "如果无法控制",
    "usage": {"type": "duration", "seconds": 4},
}
_PHRASES_EXAMPLE = "打开[客厅|卧室]的灯\n温度调到<温度:数字 16-30>度"


@router.post(
    TRANSCRIPTIONS,
    summary="Transcribe a recording",
    dependencies=[Depends(one_recording)],
    responses={200: {"content": {"application/json": {"example": _EXAMPLE}}}},
)
async def transcribe(
    request: Request,
    file: Annotated[UploadFile, File(description="WAV, FLAC, OGG, MP3, M4A, MP4, WebM …, of any length")],
    model: Annotated[
        str, Form(max_length=200, description="any name: a service has one model", examples=["whisper-1"])
    ] = "",
    language: Annotated[str, Form(max_length=30, description="Mandarin, or empty", examples=["zh"])] = "",
    prompt: Annotated[
        str,
        Form(
            max_length=LONGEST_PROMPT,
            description="words to prefer, one a line",
            examples=["重庆路 chong2 qing4 lu4"],
        ),
    ] = "",
    response_format: Annotated[
        Literal["json", "text", "srt", "vtt", "verbose_json", "diarized_json"], Form()
    ] = "json",
    temperature: Annotated[
        float, Form(ge=0.0, le=1.0, allow_inf_nan=False, description="accepted; nothing is random here")
    ] = 0.0,
    granularities: Annotated[
        list[Literal["segment", "word"]],
        Form(alias="timestamp_granularities[]", description="of verbose_json"),
    ] = [],  # noqa: B006
    granularity: Annotated[
        list[Literal["segment", "word"]],
        Form(alias="timestamp_granularities", description="the same without brackets"),
    ] = [],  # noqa: B006
    include: Annotated[list[str], Form(alias="include[]", description="logprobs, with json")] = [],  # noqa: B006
    stream: Annotated[bool, Form(description="server-sent events while it is recognised")] = False,
    digits: Annotated[bool, Form(description="numbers as digits: 123 for 一百二十三")] = False,
    channels: Annotated[
        Literal["mix", "first", "separate"],
        Form(description="of a recording with several: mixed, the first one, or a text of each"),
    ] = "mix",
    channel_names: Annotated[
        str, Form(max_length=1000, description="of separate channels", examples=["客服,客户"])
    ] = "",
) -> Response:
    """The words of a recording, with `verbose_json` also times, confidence and pinyin of each syllable."""
    if language and not is_mandarin(language):
        raise RequestError(
            400, "only Mandarin is recognised", hint="language=zh, or leave it out", param="language"
        )
    engine: Engine = request.app.state.engine
    logs = "logprobs" in include
    search = Search(prompt=prompt)
    if response_format == "diarized_json":
        channels = SEPARATE
    if channel_names and channels != SEPARATE:
        message = "names of channels that are not separate"
        raise RequestError(400, message, hint="add channels=separate", param="channel_names")
    if stream:
        if channels != MIX:
            message = "separate channels can't be streamed"
            raise RequestError(400, message, hint="leave out stream or channels", param="stream")
        body = _event_stream(request, file, search, digits, logs)
        # What is refused before the first event is a response with its status, not an event.
        first = await unless_gone(request, anext(body))
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        return StreamingResponse(_with_first(first, body), media_type="text/event-stream", headers=headers)
    with engine.admitted():
        chosen = Channels(channels, split_names(channel_names))
        segments, seconds = await collected(request, file, search, digits, chosen)
    text = response_body(
        response_format, segments, seconds, [*granularities, *granularity], temperature, logs
    )
    return Response(text, media_type=MEDIA_TYPES[response_format])


async def collected(
    request: Request,
    file: UploadFile,
    search: Search,
    digits: bool = False,
    channels: Channels = MIXED,
) -> tuple[list[Recognition], float]:
    """All segments of an upload, and its length in seconds.

    Raises:
        RequestError: it can't be recognised, or the client has gone.
    """
    return await unless_gone(request, _collected(request, file, search, digits, channels))


async def _collected(
    request: Request, file: UploadFile, search: Search, digits: bool, channels: Channels
) -> tuple[list[Recognition], float]:
    segments: list[Recognition] = []
    engine: Engine = request.app.state.engine
    async with saved_upload(file) as path, aclosing(engine.segments(path, search, channels)) as found:
        async for event in _written(request, found, digits):
            if isinstance(event, Ending):
                return segments, event.seconds
            segments.append(event)
    raise AssertionError("a recording without an end")


async def _event_stream(
    request: Request, file: UploadFile, search: Search, digits: bool, log_probabilities: bool
) -> AsyncIterator[str]:
    """Server-sent events; after the first one an error is one, too."""
    engine: Engine = request.app.state.engine
    begun = False
    with engine.admitted():
        async with saved_upload(file) as path, aclosing(engine.segments(path, search)) as segments:
            try:
                async for event in events(_written(request, segments, digits), log_probabilities):
                    yield _event(event, event["type"])
                    begun = True
            except RequestError as error:
                if not begun:
                    raise
                yield _event({"error": error.error})
    yield "data: [DONE]\n\n"


async def _with_first(first: str, others: AsyncIterator[str]) -> AsyncIterator[str]:
    yield first
    async for event in others:
        yield event


async def _written(
    request: Request, segments: AsyncIterator[Recognition | Ending], digits: bool
) -> AsyncIterator[Recognition | Ending]:
    """The same events, with numbers as digits if wanted; the length is noted for the log."""
    async for event in segments:
        if isinstance(event, Ending):
            request.state.audio_seconds = event.seconds
            yield event
        else:
            yield await asyncio.to_thread(with_digits, event) if digits else event


def _event(data: dict[str, Any], name: str = "") -> str:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n"


@router.post(PHRASES, summary="Recognise only phrases of a list", dependencies=[Depends(one_recording)])
async def recognise_phrases(
    request: Request,
    file: Annotated[UploadFile, File(description="WAV, FLAC, OGG, MP3, M4A, MP4, WebM …")],
    phrases: Annotated[
        str,
        Form(
            min_length=1,
            max_length=LONGEST_PROMPT,
            description="one a line, see docs/phrases.md",
            examples=[_PHRASES_EXAMPLE],
        ),
    ],
    threshold: Annotated[
        float,
        Form(
            ge=0.0,
            le=1.0,
            allow_inf_nan=False,
            description="least probability that a phrase of the list was spoken",
        ),
    ] = PHRASE_THRESHOLD,
    n_best: Annotated[int, Form(ge=1, le=20, description="phrases for each utterance")] = 1,
) -> dict[str, Any]:
    """Each utterance with the phrases that fit it best, and whether the first one is accepted.

    An accepted phrase has its text and slots; of anything else the syllables are given, without text.
    """
    search = Search(phrases=phrases, threshold=threshold, n_best=n_best)
    with request.app.state.engine.admitted():
        segments, seconds = await collected(request, file, search)
    accepted = [segment for segment in segments if segment.phrase and segment.phrase.accepted]
    utterances = [segment_values(segment) for segment in segments]
    return {"text": whole_text(accepted), "duration": round(seconds, 3), "utterances": utterances}
