"""Decides from the tokens and the headers of a request whether it may use the service."""

import hmac
from collections.abc import Iterable
from dataclasses import dataclass

from fastapi.datastructures import Headers
from starlette.requests import cookie_parser

SUBPROTOCOL = "bearer."
"""Beginning of the WebSocket subprotocol that carries a token: browsers can't set headers there."""
COOKIE = "speech_token"
"""Cookie that carries a token, for pages of this service (:mod:`serving.page.sign_in`)."""


@dataclass(frozen=True)
class Tokens:
    """The tokens of a service.

    Attributes:
        tokens: any of them gives access; if there is none, no token is needed.
    """

    tokens: tuple[str, ...]

    def accepts(self, token: str | None) -> bool:
        """Whether a token gives access; the time depends neither on its characters nor on ours."""
        if not self.tokens:
            return True
        given = (token or "").encode("utf-8", "replace")
        # All are compared, so that the time doesn't reveal which token is similar.
        return sum(hmac.compare_digest(given, known.encode()) for known in self.tokens) > 0


def token_of(headers: Headers) -> str | None:
    """The token in the headers of a request; None without one.

    It is a bearer token, in a WebSocket subprotocol ``bearer.TOKEN``, or in the cookie of the page.
    """
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    for name in subprotocols(headers):
        if name.startswith(SUBPROTOCOL):
            return name.removeprefix(SUBPROTOCOL)
    return cookie_parser(headers.get("cookie", "")).get(COOKIE)


def subprotocols(headers: Headers) -> list[str]:
    """The WebSocket subprotocols that a client offers."""
    return [name.strip() for name in headers.get("sec-websocket-protocol", "").split(",")]


def is_allowed_origin(headers: Headers, origins: Iterable[str]) -> bool:
    """Whether a browser's page may use the service: one of this host, or of ``origins``.

    Programs other than browsers send no origin, and are allowed.
    """
    origin = headers.get("origin")
    if origin is None or origin in origins:
        return True
    return origin.partition("://")[2] == headers.get("host")
