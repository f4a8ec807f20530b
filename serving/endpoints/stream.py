"""The WebSocket path ``/v1/stream``: recognises live audio and sends partial and final results."""

import asyncio
import json
import logging
import time
from contextlib import suppress
from typing import Any

from fastapi import APIRouter, WebSocket
from pydantic import ValidationError
from starlette.websockets import WebSocketDisconnect, WebSocketState

from serving.authentication import SUBPROTOCOL, is_allowed_origin, subprotocols, token_of
from serving.errors import AUTHENTICATION, SERVER, RequestError, field_name, field_problem
from serving.live.file_stream import FileStream
from serving.live.messages import Message, Start
from serving.live.opus import SAMPLE_RATE as OPUS_RATE
from serving.live.opus import OpusDecoder
from serving.live.worker import Open
from serving.live.workers import ClientStream
from serving.logs import new_id
from serving.settings import Settings
from serving.work.models import Failure

router = APIRouter()
LOG = logging.getLogger("serving")
PROTOCOL = "speech"
"""Subprotocol to offer beside ``bearer.TOKEN``, so that the response doesn't repeat the token."""
LARGEST_MESSAGE = 1 << 20  # bytes
ALIVE_SECONDS = 5.0
"""A client gets a message this often at least, so that it notices a connection lost without being closed."""
_NORMAL, _POLICY, _FAILED, _RESTART = 1000, 1008, 1011, 1012  # WebSocket close codes
_HINT = "docs/serving.md describes the messages"


def _error_message(error: RequestError) -> Message:
    """The message that tells a client why its stream ends."""
    return {"type": "error", **{name: error.error[name] for name in ("code", "message", "hint")}}


@router.websocket("/v1/stream")
async def stream(websocket: WebSocket) -> None:
    """Live recognition; docs/serving.md describes the messages."""
    state = websocket.app.state
    token, offered = token_of(websocket.headers), subprotocols(websocket.headers)
    known = state.tokens.accepts(token)
    refused = _refusal(websocket, token, known)
    if refused:
        state.metrics.refused.labels(refused.error["code"]).inc()
        await websocket.send_denial_response(refused.response())
        return
    chosen = [name for name in offered if name == PROTOCOL or name.startswith(SUBPROTOCOL)]
    await websocket.accept(PROTOCOL if PROTOCOL in chosen else next(iter(chosen), None))
    session = Session(websocket, state, known)
    state.sessions.add(session)
    began = time.monotonic()
    try:
        await session.run()
    except WebSocketDisconnect:
        session.ended = "disconnect"  # the client has gone
    finally:
        seconds = round(time.monotonic() - began, 3)
        LOG.info("stream", extra={"id": new_id(), "ended": session.ended, "seconds": seconds})
        state.sessions.discard(session)
        await session.close()


def _refusal(websocket: WebSocket, token: str | None, known: bool) -> RequestError | None:
    """Why a connection is refused by its headers alone; ``known``: whether they give access."""
    state = websocket.app.state
    if token is not None and not known:
        return RequestError(
            401,
            "the token is wrong",
            hint="send the header Authorization: Bearer TOKEN, or the subprotocol bearer.TOKEN",
            kind=AUTHENTICATION,
            code="token",
        )
    if not is_allowed_origin(websocket.headers, state.settings.origins):
        problem, hint = "pages of this origin may not use the service", "start the service with --origin"
        return RequestError(403, problem, hint=hint, code="origin")
    # Also those that have not begun yet. Clients that have not shown a token take no place of others.
    if sum(session.known == known for session in state.sessions) >= 2 * state.settings.streams:
        return RequestError(429, "too many connections", hint="try again later", code="streams")
    return None


class Session:
    """The conversation with one client.

    Args:
        websocket: accepted.
        state: state of the service (``app.state``).
        known: whether the headers give access already.

    Attributes:
        known: whether the client has access.
        ended: how the conversation ended, in a word.
    """

    def __init__(self, websocket: WebSocket, state: Any, known: bool):
        self.known = known
        self._websocket, self._state = websocket, state
        self._settings: Settings = state.settings
        self._stream: ClientStream | FileStream | Any = None  # until it begins
        self._decoder: OpusDecoder | None = None
        self._stop = asyncio.Event()  # the service ends
        self.ended: str | None = "failed"  # how, for the log

    def stop(self) -> None:
        """End the stream as if the client had."""
        self._stop.set()

    async def run(self) -> None:
        """Talk until the client, a limit or the service ends the stream.

        Raises:
            WebSocketDisconnect: the client has gone.
        """
        try:
            start = await self._started()
            self.known = True
            await self._begin(start)
            receiving = asyncio.ensure_future(self._receive(start))
            try:
                seconds = await self._send(receiving)
            finally:
                receiving.cancel()
            with suppress(asyncio.CancelledError):
                await receiving
            await self._write({"type": "end", "seconds": round(seconds, 3)})
            self.ended = "end"
            await self._websocket.close(_NORMAL)
        except RequestError as error:
            code = {500: _FAILED, 503: _RESTART}.get(error.status_code, _POLICY)
            message = _error_message(error)
            self.ended = message["code"]
            await self._write(message)
            await self._websocket.close(code)

    async def close(self) -> None:
        """Free what the session has."""
        if self._stream:
            self._stream.close()
        if self._decoder:
            await self._decoder.close()

    async def _started(self) -> Start:
        """The first message of the client, checked."""
        try:
            message = await self._next(self._settings.receive_seconds)
        except TimeoutError as error:
            raise _invalid("the message 'start' did not come in time") from error
        if not isinstance(message, dict):
            came = "sound" if isinstance(message, bytes) else "something else"
            raise _invalid(f"{came} came instead of the message 'start', a JSON object")
        try:
            start = Start.model_validate(message)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            problem, advice = field_problem(first)
            raise _invalid(
                f"'{field_name(first['loc'])}' in the message 'start' {problem}", advice
            ) from error
        if not self.known and not self._state.tokens.accepts(start.token):
            self._state.metrics.refused.labels("token").inc()
            problem = "the token is wrong" if start.token else "a token is needed"
            hint = "as a header, as the subprotocol bearer.TOKEN, or in the message 'start'"
            raise RequestError(401, problem, hint=hint, kind=AUTHENTICATION, code="token")
        return start

    async def _begin(self, start: Start) -> None:
        if start.encoding == "file":
            engine = self._state.engine
            sample_rate = await asyncio.shield(asyncio.wrap_future(engine.sample_rate))
            self._stream = FileStream(engine, start.search, sample_rate)
        else:
            rate = OPUS_RATE if start.encoding == "opus" else start.rate
            live: ClientStream = await self._state.live.open(Open(rate, start.search, start.second_pass))
            self._stream = live
            if start.encoding == "opus":
                threads, longest = self._state.decoder_threads, self._settings.stream_seconds
                self._decoder = OpusDecoder(live, threads, longest)
        ready = {
            "type": "ready",
            "rate": self._stream.sample_rate,
            "model": self._settings.speech.name,
            "look_ahead_ms": round(1000 * self._stream.look_ahead_seconds),
            "alive_seconds": ALIVE_SECONDS,
        }
        await self._write(ready)

    async def _receive(self, start: Start) -> RequestError | None:
        """Pass sound on until the end; the reason, unless the client ended it.

        Raises:
            RequestError: the reason, if it is a file.
        """
        is_file = start.encoding == "file"
        left = self._settings.stream_seconds * 2 * start.rate  # bytes
        if is_file:
            left = self._settings.upload_megabytes * 1e6
        half = b""  # of a sample
        idle, last_sound = self._settings.stream_idle_seconds, time.monotonic()
        while True:
            try:
                message = await self._next(last_sound + idle - time.monotonic())
            except TimeoutError:
                problem, hint = f"no sound for {idle:g} s", "send silence too, or 'end'"
                break_off: RequestError | None = RequestError(400, problem, hint=hint, code="idle")
                break
            except RequestError as error:
                break_off = error
                break
            if isinstance(message, bytes):
                left -= 0 if self._decoder else len(message)
                if left < 0:
                    break_off = self._too_large() if is_file else self._too_long()
                    break
                if self._decoder:
                    await self._decoder.feed(message)
                elif is_file:
                    await self._stream.feed(message)
                else:
                    sound = half + message
                    whole = len(sound) // 2 * 2
                    half = sound[whole:]
                    await self._stream.feed(sound[:whole])
                if message:
                    last_sound = time.monotonic()  # after the waiting, in which more sound can have come
            elif message == {"type": "end"}:
                break_off = None
                break
            else:
                break_off = _invalid("a message that is neither sound nor 'end'")
                break
        if is_file and break_off:
            raise break_off  # a part of a file is not recognised
        if self._decoder:
            await self._decoder.feed(None)  # ends the stream when all is decoded
        else:
            self._stream.end()
        return break_off

    def _too_long(self) -> RequestError:
        problem = f"the stream is longer than {self._settings.stream_seconds:g} s"
        return RequestError(400, problem, hint="connect again", code="too_long")

    def _too_large(self) -> RequestError:
        problem = f"the file has more than {self._settings.upload_megabytes:g} MB"
        return RequestError(400, problem, hint="compress it, e.g. as FLAC or Opus", code="too_large")

    async def _next(self, seconds: float) -> bytes | Any:
        """The next message.

        Raises:
            TimeoutError: nothing came within ``seconds``.
            RequestError: the service ends.
        """
        if self._stop.is_set():  # before anything else: there may always be a next message
            raise _ending()
        receiving = asyncio.ensure_future(self._message())
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait([receiving, stopping], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if receiving.done():
                return receiving.result()
            if stopping.done():
                raise _ending()
            raise TimeoutError
        finally:
            receiving.cancel()
            stopping.cancel()

    async def _message(self) -> bytes | Any:
        """Sound, or a message."""
        message = await self._websocket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", _NORMAL))
        data = message.get("bytes")
        if (size := len(data or message.get("text") or "")) > LARGEST_MESSAGE:
            problem = f"a message of {size:,} bytes, more than {LARGEST_MESSAGE:,} bytes"
            raise RequestError(400, problem, hint="send the sound in smaller pieces", code="message_size")
        if data is not None:
            return data
        try:
            return json.loads(message.get("text") or "")
        except (ValueError, RecursionError) as error:
            raise _invalid("a message that is not JSON") from error

    async def _send(self, receiving: asyncio.Future) -> float:
        """Send messages until the stream has ended; its seconds."""
        while True:
            result = await self._result(receiving)
            if isinstance(result, dict):
                await self._write(result)
                continue
            if isinstance(result, Failure):
                status = 500 if result.internal else 400
                code = "worker_failed" if result.internal else "invalid_search"
                raise RequestError(status, result.message, hint=result.hint, code=code)
            if self._decoder and self._decoder.too_long:
                raise self._too_long()
            if self._decoder and self._decoder.problem:
                raise RequestError(400, self._decoder.problem, hint=_OPUS_HINT, code="invalid_audio")
            if receiving.done() and (error := receiving.result()):
                raise error
            return result

    async def _result(self, receiving: asyncio.Future) -> dict[str, Any] | Failure | float:
        """The next result of the stream; until it comes, the client gets ``alive`` messages.

        Raises:
            WebSocketDisconnect: the client has gone.
        """
        result = asyncio.ensure_future(self._stream.receive())
        try:
            while not result.done():
                awaited = [result] if receiving.done() else [result, receiving]
                done, _ = await asyncio.wait(
                    awaited, timeout=ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                if receiving.done() and (problem := receiving.exception()):
                    raise problem
                if not done:
                    await self._write({"type": "alive"})
            return result.result()
        finally:
            result.cancel()

    async def _write(self, message: dict[str, Any]) -> None:
        """Send a message; a client that does not read in time is left."""
        if self._websocket.client_state is not WebSocketState.CONNECTED:
            raise WebSocketDisconnect(_NORMAL)
        text = json.dumps(message, ensure_ascii=False)
        try:
            await asyncio.wait_for(self._websocket.send_text(text), self._settings.receive_seconds)
        except TimeoutError as error:
            self._state.metrics.refused.labels("slow_reader").inc()
            raise WebSocketDisconnect(_POLICY) from error


_OPUS_HINT = "send Opus in WebM or Ogg as MediaRecorder makes it, from its first byte; or PCM"


def _ending() -> RequestError:
    return RequestError(503, "the service ends", hint="connect again", kind=SERVER, code="shutdown")


def _invalid(problem: str, advice: str | None = None) -> RequestError:
    hint = f"{advice}; {_HINT}" if advice else _HINT
    return RequestError(400, problem, hint=hint, code="invalid_message")
