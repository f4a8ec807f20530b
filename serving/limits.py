"""Guards the service: refuses requests without a token or beyond a limit, passes the others on, logs them.

The guard stands before everything else, so that a request without a token, or beyond a limit, costs nothing:
it is answered before its body is read.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from fastapi.datastructures import Headers

from serving.authentication import Tokens, is_allowed_origin, token_of
from serving.endpoints.files import UPLOAD_PATHS, is_form
from serving.errors import AUTHENTICATION, LIMIT, SERVER, RequestError
from serving.logs import new_id
from serving.metrics import Metrics
from serving.page import sign_in
from serving.settings import Settings

LOG = logging.getLogger("serving")
# A supervisor asks for these every few seconds, also while the service is full: they need no token, count for
# no limit and are not worth a line of the log.
_PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
SLOWEST = 2000.0  # bytes a second that a client has to send and take, after its first seconds
_DRAINED, _DRAIN_SECONDS = 1 << 20, 2.0  # bytes and time for which a refused request is still read
_LARGEST_TEXT = 1_000_000  # most bytes of a request without a recording
_LONGEST_NUMBER = 18  # digits of a number of bytes
_REMEMBERED = 10_000  # clients whose requests are counted

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class Guard:
    """An ASGI application around another one.

    Args:
        app: the inner one.
        settings: limits and origins.
        tokens: who has access.
        metrics: counts requests.
        check_places: raises RequestError if no further recording is processed now.
    """

    def __init__(
        self,
        app: Application,
        settings: Settings,
        tokens: Tokens,
        metrics: Metrics,
        check_places: Callable[[], None],
    ):
        self._app, self._settings, self._tokens, self._metrics = app, settings, tokens, metrics
        self._check_places = check_places
        self._rates = Rates(settings.rate)
        self._open = 0

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Handle a request; a WebSocket and the start of the service are passed on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = _Request(scope, receive, send, self._settings, self._metrics)
        self._open += 1
        self._metrics.connections.set(self._open)
        try:
            self._check(scope)
            await self._app(scope, request.receive, request.send)
        except RequestError as error:
            await request.refuse(error)
        except TimeoutError:  # the client does not take its response
            self._metrics.refused.labels("slow").inc()
        except Exception:
            LOG.exception("a request failed", extra={"request": scope["state"]["id"]})
            problem, hint = "the service has failed", "try again; the log of the service says why"
            await request.refuse(RequestError(500, problem, hint=hint, kind=SERVER))
        finally:
            self._open -= 1
            self._metrics.connections.set(self._open)
            request.note()

    def _check(self, scope: MutableMapping[str, Any]) -> None:
        """Refuse a request by its headers alone.

        Raises:
            RequestError: no token, another origin, too many or too large.
        """
        if scope["path"] in _PROBES:
            return
        headers = Headers(scope=scope)
        token = token_of(headers)
        accepted = self._tokens.accepts(token)
        if not accepted and scope["path"] != sign_in.PATH:
            self._metrics.refused.labels("token").inc()
            if sign_in.opens_page(headers):
                raise sign_in.SignInNeeded(scope["path"], headers)
            raise RequestError(
                401,
                "the token is wrong" if token else "a token is needed",
                hint="send the header Authorization: Bearer TOKEN",
                kind=AUTHENTICATION,
                code="invalid_api_key",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if not is_allowed_origin(headers, self._settings.origins):
            self._metrics.refused.labels("origin").inc()
            raise RequestError(
                403,
                "pages of this origin may not use the service",
                hint="start the service with --origin for pages of other hosts",
                code="origin",
            )
        if self._open > self._settings.connections:
            self._metrics.refused.labels("connections").inc()
            problem, hint = (
                f"{self._settings.connections} requests are open, which is the limit",
                "try again later",
            )
            raise RequestError(
                429, problem, hint=hint, kind=LIMIT, code="connections", headers={"Retry-After": "2"}
            )
        if wait := self._rates.wait(token if accepted and self._tokens.tokens else _address(scope)):
            self._metrics.refused.labels("rate").inc()
            raise RequestError(
                429,
                f"more than {self._settings.rate} requests in a minute",
                hint=f"wait {wait} s",
                kind=LIMIT,
                code="rate",
                headers={"Retry-After": str(wait)},
            )
        length = headers.get("content-length", "0").lstrip("0")
        is_number = length.isascii() and length.isdecimal()
        if is_number and (len(length) > _LONGEST_NUMBER or int(length) > _largest(scope, self._settings)):
            raise _too_large(scope, self._settings)
        if _has_recording(scope):
            self._check_places()


class Rates:
    """How many requests each client has begun in the last minute (a token bucket for each).

    Args:
        limit: requests in a minute; 0: any number.
    """

    def __init__(self, limit: int):
        self._limit = limit
        self._clients: OrderedDict[str | None, tuple[float, float]] = OrderedDict()  # requests left, when

    def wait(self, client: str | None) -> int:
        """Count a request; seconds until it is allowed, 0 if it is."""
        if not self._limit:
            return 0
        now = time.monotonic()
        left, before = self._clients.get(client, (float(self._limit), now))
        left = min(self._limit, left + (now - before) * self._limit / 60.0)
        allowed = left >= 1.0
        self._clients[client] = (left - allowed, now)
        self._clients.move_to_end(client)
        if len(self._clients) > _REMEMBERED:
            self._clients.popitem(last=False)
        return 0 if allowed else 1 + int((1.0 - left) * 60.0 / self._limit)


class _Request:
    """A request: counts what it receives, and notes how it was answered."""

    def __init__(
        self,
        scope: MutableMapping[str, Any],
        receive: Receive,
        send: Send,
        settings: Settings,
        metrics: Metrics,
    ):
        self._scope, self._receive, self._send = scope, receive, send
        self._settings, self._metrics = settings, metrics
        self._started = time.monotonic()
        headers = Headers(scope=scope)
        self._largest = _largest(scope, settings)
        self._received, self._drained = 0, 0
        # A request without a body is complete: nothing of it is left to wait for.
        self._complete = headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers
        self._status = 0
        scope.setdefault("state", {})["id"] = new_id()

    async def receive(self) -> Message:
        """The next message of the client.

        Raises:
            RequestError: the body is too large, or comes too slowly.
        """
        if self._complete:
            return await self._receive()
        allowed = self._settings.receive_seconds
        late = self._started + allowed + self._received / SLOWEST - time.monotonic()
        try:
            message = await asyncio.wait_for(self._receive(), max(0.01, min(allowed, late)))
        except TimeoutError:
            self._metrics.refused.labels("slow").inc()
            hint = f"send at least {SLOWEST:g} bytes a second"
            raise RequestError(408, "the request comes too slowly", hint=hint, code="slow") from None
        self._received += len(message.get("body", b""))
        self._complete = not message.get("more_body", False)
        if self._received > self._largest:
            raise _too_large(self._scope, self._settings)
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the response; a client that does not take it is cut off."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = [*message["headers"], (b"x-request-id", self._scope["state"]["id"].encode())]
            if not self._complete:
                if not Headers(scope=self._scope).get("expect"):
                    await self._drain()
                headers += [] if self._complete else [(b"connection", b"close")]
            message["headers"] = headers
        allowed = self._settings.receive_seconds + len(message.get("body", b"")) / SLOWEST
        await asyncio.wait_for(self._send(message), allowed)

    async def refuse(self, error: RequestError) -> None:
        """Answer with an error, unless the response has begun."""
        if not self._status:
            await error.response()(self._scope, self._receive, self.send)

    async def _drain(self) -> None:
        """Read a little of the body of a refused request, so that the client can read the response."""
        late = time.monotonic() + _DRAIN_SECONDS
        with suppress(TimeoutError):
            while not self._complete and self._drained < _DRAINED:
                message = await asyncio.wait_for(self._receive(), max(0.01, late - time.monotonic()))
                self._drained += len(message.get("body", b""))
                self._complete = not message.get("more_body", False)

    def note(self) -> None:
        """Count the request and write its line of the log: no text, no audio, no names of files."""
        route = getattr(self._scope.get("route"), "path", "other")
        seconds = time.monotonic() - self._started
        self._metrics.requests.labels(route, str(self._status)).inc()
        self._metrics.request_seconds.labels(route).observe(seconds)
        state = self._scope["state"]
        details = {
            "request": state["id"],
            "method": self._scope["method"],
            "route": route,
            "status": self._status,
            "seconds": round(seconds, 4),
            "received_bytes": self._received,
        }
        if "audio_seconds" in state:
            details["audio_seconds"] = round(state["audio_seconds"], 3)
        LOG.log(logging.DEBUG if route in _PROBES else logging.INFO, "request", extra=details)


def _address(scope: MutableMapping[str, Any]) -> str:
    return (scope.get("client") or ("",))[0]


def _has_recording(scope: MutableMapping[str, Any]) -> bool:
    return scope["path"] in UPLOAD_PATHS and is_form(Headers(scope=scope))


def _largest(scope: MutableMapping[str, Any], settings: Settings) -> int:
    """Bytes of the largest request. Other paths keep the whole body in memory, or need no token."""
    return settings.upload_bytes if _has_recording(scope) else min(settings.upload_bytes, _LARGEST_TEXT)


def _too_large(scope: MutableMapping[str, Any], settings: Settings) -> RequestError:
    problem = f"the request is larger than {_largest(scope, settings) / 1e6:g} MB"
    if _has_recording(scope):
        param, hint = "file", "send a compressed format such as Opus or MP3, or parts of the recording"
    else:
        param, hint = None, "send a text in parts, and a recording as a file of a form (multipart/form-data)"
    return RequestError(413, problem, hint=hint, param=param, code="too_large")
