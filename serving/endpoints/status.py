"""Responses for supervisors, load balancers and Prometheus: health, readiness, models, metrics.

All but those about models need no token and are never refused for the load (:mod:`serving.limits`).
"""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from serving.errors import RequestError
from serving.metrics import CONTENT_TYPE

router = APIRouter(tags=["status"])


@router.get("/healthz", summary="Whether the process answers")
async def healthz() -> dict[str, str]:
    """Always the same response: the process is alive."""
    return {"status": "ok"}


@router.get("/readyz", summary="Whether requests can be answered now")
async def readyz(request: Request) -> JSONResponse:
    """200 as soon as a worker for recordings and one for live streams have loaded the models; 503 before."""
    state = request.app.state
    ready = state.engine.ready and bool(state.live.pids)
    return JSONResponse({"status": "ready" if ready else "not ready"}, 200 if ready else 503)


@router.get("/metrics", summary="Metrics in Prometheus's text format")
async def metrics(request: Request) -> Response:
    """Requests, seconds of audio, waiting times and workers."""
    return Response(request.app.state.metrics.text(), media_type=CONTENT_TYPE)


@router.get("/v1/models", summary="The models")
async def models(request: Request) -> dict[str, Any]:
    """In the form of OpenAI's interface. Requests may name any model: each service has one of each kind."""
    return {"object": "list", "data": _models(request)}


@router.get("/v1/models/{model}", summary="A model")
async def model(request: Request, model: str) -> JSONResponse:
    """One of the models, by its id."""
    found = [entry for entry in _models(request) if entry["id"] == model]
    if not found:
        raise RequestError(
            404, "there is no model of this name", hint="GET /v1/models lists them", param="model"
        )
    return JSONResponse(found[0])


def _models(request: Request) -> list[dict[str, Any]]:
    settings = request.app.state.settings
    return [
        {
            "id": run.resolve().name,
            "object": "model",
            "created": int(run.stat().st_mtime),
            "owned_by": "local",
        }
        for run in (settings.speech, settings.language)
    ]
