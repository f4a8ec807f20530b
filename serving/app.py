"""Builds the service as a FastAPI application from its settings: routes, guard, workers and live streams."""

import asyncio
import logging
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from serving.authentication import Tokens
from serving.endpoints import conversion, documentation, status, stream, transcriptions
from serving.endpoints.files import is_form
from serving.errors import RequestError, of_http_error, of_user_error, of_validation_error
from serving.limits import Guard
from serving.live import opus
from serving.live import worker as live_worker
from serving.live.workers import LiveWorkers
from serving.metrics import Metrics
from serving.page import comparison, sign_in
from serving.page import files as page_files
from serving.settings import Settings
from serving.work import engine, uploads
from serving.work.shared import share_models
from utils.errors import UserError

LOG = logging.getLogger("serving")
TITLE = "Mandarin speech recognition"
_PRELOADED = (
    *(module.__name__ for module in (engine, uploads, live_worker, opus)),
    "av",
)  # what processes run


def create_app(settings: Settings) -> FastAPI:
    """Build the service; models are loaded when it starts.

    ``app.state.settings`` are the settings, ``app.state.tokens`` says who has access, ``app.state.engine``
    recognises, ``app.state.live`` follows the live streams of ``app.state.sessions``, ``app.state.metrics``
    counts. If the models can't be loaded, ``app.state.failure`` is the reason, and ``app.state.stop`` is
    called. ``app.state.url`` is the address for the log.
    """
    app = FastAPI(
        title=TITLE,
        summary="Speech and pinyin in, text out",
        lifespan=_lifespan,
        docs_url=None,  # FastAPI's pages fetch scripts from elsewhere
        redoc_url=None,
    )
    metrics = Metrics()
    app.state.settings, app.state.metrics, app.state.failure = settings, metrics, None
    app.state.url = ""
    app.state.stop = lambda: None
    app.state.tokens = Tokens(settings.tokens)
    app.state.engine = engine.Engine(settings, metrics)
    app.state.live, app.state.sessions = LiveWorkers(settings, metrics), set()
    for kind in (RequestError, UserError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _answer)
    for part in (
        transcriptions,
        conversion,
        comparison,
        page_files,
        stream,
        sign_in,
        status,
        documentation,
    ):
        app.include_router(part.router)
    app.mount("/page", page_files.PageFiles())
    app.add_middleware(
        Guard,
        settings=settings,
        tokens=app.state.tokens,
        metrics=metrics,
        check_places=app.state.engine.check_places,
    )
    if settings.origins:
        # Around the guard: a browser asks for permission without a token, and pages read refusals too.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.origins,
            allow_methods=("GET", "HEAD", "POST"),
            allow_headers=("*",),  # OpenAI's client sends a dozen of its own
            expose_headers=("X-Request-Id", "Retry-After"),
            allow_private_network=True,  # also to a page of a public address
        )
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    recognising: engine.Engine = app.state.engine
    live: LiveWorkers = app.state.live
    settings: Settings = app.state.settings
    share_models(settings.speech, settings.language, *_PRELOADED)
    recognising.start()
    live.start()
    app.state.decoder_threads = ThreadPoolExecutor(4 * app.state.settings.streams, "decoder")
    recognising.sample_rate.add_done_callback(lambda loaded: _models_loaded(app, loaded))
    yield
    await asyncio.to_thread(live.stop)
    await asyncio.to_thread(recognising.stop)
    app.state.decoder_threads.shutdown(cancel_futures=True)


def _models_loaded(app: FastAPI, loaded: Future) -> None:
    """Log that requests are answered at once now; without models there is nothing to serve."""
    if loaded.cancelled():
        return
    if error := loaded.exception():
        app.state.failure = error
        app.state.stop()
    else:
        LOG.info("ready for recordings", extra={"url": app.state.url})


async def _answer(request: Request, error: Exception) -> Response:
    match error:
        case RequestError():
            return error.response()
        case UserError():
            return of_user_error(error).response()
        case RequestValidationError():
            return of_validation_error(error, is_form(request.headers)).response()
        case HTTPException():
            return of_http_error(error).response()
    raise error
