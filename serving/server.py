"""Runs the service with uvicorn until a signal, or a failure of the application.

Accepted requests are then still answered, and live streams get what was recognised so far. Connections that
are idle, or send their headers too slowly, are closed.
"""

import asyncio
import errno
import logging
import os
import signal
import socket
from functools import partial
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from serving.app import create_app
from serving.endpoints.stream import LARGEST_MESSAGE
from serving.limits import SLOWEST
from serving.logs import log_to_standard_error
from serving.settings import Settings
from utils.errors import ConfigError
from utils.stop_signals import Stopped

LOG = logging.getLogger("serving")
_KEPT_SECONDS = 60  # idle connections are closed after this; proxies and clients wait less
_STREAMS_SECONDS = 30.0  # for the last utterances of live streams
_OWN_ADDRESS = "give --host an address of this machine, e.g. 127.0.0.1"
_LISTENING_HINTS = {
    errno.EADDRINUSE: "another program listens there: choose another --port (make serve PORT=8001)",
    errno.EADDRNOTAVAIL: _OWN_ADDRESS,
    errno.EACCES: "this user may not use the port: choose a --port above 1023",
}
_SPARE_CONNECTIONS = 64  # connections beyond `settings.connections`, for clients that wait


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Once the log has begun, it says why the service ends, in JSON as everything else.

    Raises:
        ConfigError: the address can't be used.
        SystemExit: with the exit codes of other commands: after a signal, or if the models can't be loaded.
    """
    share_cores(settings)
    listener = listening_socket(settings)
    log_to_standard_error()
    app = create_app(settings)
    protocol: Any = partial(_Protocol, settings)  # called like the class
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="websockets-sansio",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEPT_SECONDS,
        ws_max_size=8 * LARGEST_MESSAGE,  # a larger one is not even read: close code 1009
        # A client whose sound waits answers a ping after it, perhaps minutes later. Silence ends a stream.
        ws_ping_interval=None,
    )
    server = _Server(config)

    def stop() -> None:
        server.should_exit = True

    app.state.stop = stop
    host, port = listener.getsockname()[:2]
    app.state.url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    LOG.info("listening; the models are loading", extra={"url": app.state.url})
    # uvicorn raises the signal again when it has ended.
    signal.signal(signal.SIGTERM, _stopped)
    try:
        server.run([listener])
    except KeyboardInterrupt as signalled:
        stopped = signalled if isinstance(signalled, Stopped) else Stopped()
        LOG.info(str(stopped))
        raise SystemExit(128 + stopped.number) from signalled
    if app.state.failure:
        raise SystemExit(2)


def share_cores(settings: Settings) -> None:
    """Divide the cores among the processes with models: the threads of NumPy and of ONNX Runtime in each.

    The processes inherit the environment variable; one that the user has set stays.
    """
    cores, processes = len(os.sched_getaffinity(0)), settings.workers + settings.live_workers
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cores // processes)))


def _stopped(number: int, frame: FrameType | None) -> None:
    raise Stopped(number)


def listening_socket(settings: Settings) -> socket.socket:
    """A socket that listens on the host and port of the settings.

    Raises:
        ConfigError: the address can't be used.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        socket.getaddrinfo(settings.host, None, family)
    except (OSError, UnicodeError) as error:
        raise ConfigError(
            f"can't find the address of the host {settings.host} ({error})",
            hint=f"check the spelling of --host, or {_OWN_ADDRESS}",
        ) from error
    try:
        listener = socket.create_server((settings.host, settings.port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        number = getattr(error, "errno", 0)
        raise ConfigError(
            f"can't listen on {settings.host}:{settings.port} ({error})",
            hint=_LISTENING_HINTS.get(number, "choose another --port or --host"),
        ) from error
    # asyncio sets it for the sockets that it opens itself only. Without it a response of two parts takes 40
    # ms more, because the second part waits until the client has acknowledged the first.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


class _Server(uvicorn.Server):
    """A server that lets live streams end: they get what was recognised so far before they are closed."""

    @property
    def _state(self) -> Any:
        app: Any = self.config.app
        return app.state

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, end the streams, then everything else."""
        for listener in self.servers:
            listener.close()
        sessions = self._state.sessions
        for session in list(sessions):
            session.stop()
        late = asyncio.get_running_loop().time() + _STREAMS_SECONDS
        while sessions and asyncio.get_running_loop().time() < late:
            await asyncio.sleep(0.05)
        aborting = asyncio.create_task(self._abort_unread())
        await super().shutdown(sockets)
        aborting.cancel()

    async def _abort_unread(self) -> None:
        """Abort connections whose last response is not read: closing them would wait for that."""
        before: dict[Any, int] = {}  # bytes that were not sent yet
        while True:
            await asyncio.sleep(self._state.settings.receive_seconds)
            closing = {
                connection.transport: connection.transport.get_write_buffer_size()
                for connection in list(self.server_state.connections)
                if connection.transport.is_closing()
            }
            for transport, unsent in closing.items():
                if unsent >= before.get(transport, unsent + 1):
                    transport.abort()
            before = closing


class _Protocol(HttpToolsProtocol):
    """HTTP with the limits that uvicorn lacks: for headers, unread responses and idle connections.

    Args:
        limits: of the service.
        of_uvicorn: what uvicorn gives to its own protocol.
    """

    def __init__(self, limits: Settings, **of_uvicorn: Any):
        super().__init__(**of_uvicorn)
        self._limits = limits
        self._headers_late: asyncio.TimerHandle | None = None
        self._writing_late: asyncio.TimerHandle | None = None
        self._resumed = False  # whether the client has taken what was to be sent before

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self._limits.connections + _SPARE_CONNECTIONS:
            transport.abort()
        else:
            self._headers_late = self.loop.call_later(self._limits.receive_seconds, transport.abort)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self not in self.connections:  # a WebSocket has taken over the transport
            self._in_time()
            return
        between = self.cycle is None or self.cycle.response_complete
        # Line ends between two requests are data, so that uvicorn's timer stops, but no request.
        if between and self._headers_late is None and not self.transport.is_closing():
            self._headers_late = self.loop.call_later(self._limits.receive_seconds, self.transport.abort)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_time()
        self._headers_late = self.loop.call_later(self._limits.receive_seconds, self.transport.abort)

    def on_headers_complete(self) -> None:
        self._in_time()
        super().on_headers_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._writing_late is None:
            self._watch_writing()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._resumed = True

    def connection_lost(self, exc: Exception | None) -> None:
        self._in_time()
        if self._writing_late:
            self._writing_late.cancel()
        super().connection_lost(exc)

    def _watch_writing(self, before: int | None = None) -> None:
        """Abort the connection if the client has taken too little of its response since last time."""
        unsent, seconds = self.transport.get_write_buffer_size(), self._limits.receive_seconds
        # After a pause there may be more to send than before.
        if before is not None and not self._resumed and before - unsent < min(before, SLOWEST * seconds):
            self.transport.abort()
        self._resumed = False
        self._writing_late = self.loop.call_later(seconds, self._watch_writing, unsent) if unsent else None

    def _in_time(self) -> None:
        if self._headers_late:
            self._headers_late.cancel()
            self._headers_late = None
