"""Settings in; the service as an ASGI application out."""

from fastapi import FastAPI, Request, Response

from serving import status
from serving.authentication import Tokens
from serving.errors import RequestError
from serving.settings import Settings

TITLE = "Mandarin speech recognition"


def create_app(settings: Settings) -> FastAPI:
    """Build the service; models are loaded when it starts.

    ``app.state.settings`` are the settings, ``app.state.tokens`` says who has access.
    """
    app = FastAPI(title=TITLE, description=__doc__)
    app.state.settings = settings
    app.state.tokens = Tokens(settings.tokens)
    app.state.ready = lambda: True
    app.add_exception_handler(RequestError, _answer)
    app.include_router(status.router)
    return app


async def _answer(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return error.response()
