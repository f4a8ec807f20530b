"""Saves an upload as a temporary file that a decoder can open, and removes it afterwards."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import UploadFile


@asynccontextmanager
async def saved_upload(upload: UploadFile) -> AsyncIterator[Path]:
    """The upload as a file of an arbitrary name in the folder for temporary files."""
    with tempfile.NamedTemporaryFile(prefix="upload-") as file:
        await asyncio.to_thread(shutil.copyfileobj, upload.file, file)
        file.flush()
        yield Path(file.name)
