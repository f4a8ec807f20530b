"""Serves the files of the page, with security headers that keep the page to its own server."""

from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.staticfiles import StaticFiles

STATIC = Path(__file__).parent / "static"
# Nothing but files of this server runs or is fetched; no text can become code.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
    # Without a referrer, forms would have no origin, and the service would refuse them.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    # Parts of two versions never meet: a browser asks each time, and an unchanged file is a short response.
    "Cache-Control": "no-cache",
}


class PageFiles(StaticFiles):
    """The parts of the page, an ASGI application to be mounted at ``/page``."""

    def __init__(self) -> None:
        super().__init__(directory=STATIC)

    async def get_response(self, path: str, scope: MutableMapping[str, Any]) -> Response:
        """The file at a path below the folder, or that a browser's copy is still right; 404 for no file."""
        response = await super().get_response(path, scope)
        response.headers.update(HEADERS)
        return response


router = APIRouter(include_in_schema=False)
_files = PageFiles()


@router.api_route("/", methods=["GET", "HEAD"])
async def page(request: Request) -> Response:
    """The page."""
    return await _files.get_response("index.html", request.scope)
