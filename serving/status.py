"""The state of the service in; answers for load balancers and supervisors out."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

router = APIRouter(tags=["status"])


@router.get("/healthz", summary="Whether the process answers")
async def healthz() -> dict[str, str]:
    """Always the same answer, without a token: the process is alive."""
    return {"status": "ok"}


@router.get("/readyz", summary="Whether requests can be answered now")
async def readyz(request: Request) -> JSONResponse:
    """200 as soon as a worker has loaded the models; 503 before, and while the service ends."""
    ready = request.app.state.ready()
    return JSONResponse({"status": "ready" if ready else "not ready"}, 200 if ready else 503)
