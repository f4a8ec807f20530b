"""Ends the work for a request when its client closes the connection."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from fastapi import Request

from serving.errors import RequestError

_POLL_SECONDS = 0.5  # between two checks whether the client is still connected
_Result = TypeVar("_Result")


async def unless_gone(request: Request, work: Awaitable[_Result]) -> _Result:
    """The result of ``work``, which is cancelled when the client has gone.

    Raises:
        RequestError: the client has gone.
    """
    working = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_until_gone(request))
    try:
        await asyncio.wait([working, gone], return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise RequestError(499, "the client has closed the connection")
        return working.result()
    finally:
        for task in (working, gone):
            task.cancel()
        await asyncio.wait([working, gone])


async def _until_gone(request: Request) -> None:
    while not await request.is_disconnected():
        await asyncio.sleep(_POLL_SECONDS)
