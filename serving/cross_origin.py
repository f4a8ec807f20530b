"""Lets browsers use the service from pages of allowed origins (CORS), also from outside a private network.

A browser asks for permission before such a request. Chrome also asks whether a page of a public
address may reach a private network (https://wicg.github.io/private-network-access/).
"""

from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

# A browser asks for each of these headers by name. OpenAI's client sends more than the service reads.
_REQUEST_HEADERS = (
    "Authorization",
    "Content-Type",
    "User-Agent",
    "X-Stainless-Arch",
    "X-Stainless-Lang",
    "X-Stainless-OS",
    "X-Stainless-Package-Version",
    "X-Stainless-Retry-Count",
    "X-Stainless-Runtime",
    "X-Stainless-Runtime-Version",
    "X-Stainless-Timeout",
)
_RESPONSE_HEADERS = ("X-Request-Id", "Retry-After")
_PRIVATE_NETWORK = "Access-Control-Allow-Private-Network"


class CrossOrigin(CORSMiddleware):
    """An ASGI application around another one, which pages of some other origins may use.

    Args:
        app: the inner one.
        origins: scheme, host and port of the pages.
    """

    def __init__(self, app: ASGIApp, origins: Sequence[str]):
        super().__init__(
            app,
            allow_origins=origins,
            allow_methods=("GET", "HEAD", "POST"),
            allow_headers=_REQUEST_HEADERS,
            expose_headers=_RESPONSE_HEADERS,
            allow_private_network=True,
        )

    def preflight_response(self, request_headers: Headers) -> Response:
        """See the base class; a refusal gives no permission for the private network either."""
        response = super().preflight_response(request_headers)
        if response.status_code >= 400 and _PRIVATE_NETWORK in response.headers:
            del response.headers[_PRIVATE_NETWORK]
        return response
