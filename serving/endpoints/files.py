"""The recording of a request: where one is expected, that it is alone, and its temporary file."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import Request, UploadFile
from fastapi.datastructures import Headers

from serving.errors import RequestError, not_stored

TRANSCRIPTIONS, PHRASES = "/v1/audio/transcriptions", "/v1/phrases"
UPLOAD_PATHS = frozenset({TRANSCRIPTIONS, PHRASES})
"""Paths of the requests with a recording; only these may be large."""


def is_form(headers: Headers) -> bool:
    """Whether a request is a form that can hold a file."""
    return headers.get("content-type", "").lower().startswith("multipart/")


async def one_recording(request: Request) -> None:
    """Refuse a form with several recordings, of which only the last would be recognised.

    Raises:
        RequestError: the field ``file`` occurs more than once.
    """
    form = await request.form()  # already parsed for the fields
    if (count := len(form.getlist("file"))) > 1:
        raise RequestError(
            400, f"{count} files in a request", hint="send a request for each recording", param="file"
        )


@asynccontextmanager
async def saved_upload(upload: UploadFile) -> AsyncIterator[Path]:
    """The upload as a file of an arbitrary name in the folder for temporary files."""
    with tempfile.NamedTemporaryFile(prefix="upload-") as file:
        try:
            await asyncio.to_thread(shutil.copyfileobj, upload.file, file)
            file.flush()
        except OSError as error:
            raise not_stored(error) from error
        await upload.close()  # its copy is enough
        yield Path(file.name)
