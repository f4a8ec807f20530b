"""Recognises a file that is sent over a live stream, as an uploaded recording: the results are the same."""

import asyncio
import tempfile
from contextlib import aclosing
from pathlib import Path

from serving.errors import RequestError, not_stored
from serving.live.messages import Message, final_message
from serving.work.engine import Engine
from serving.work.models import Search
from utils.hypotheses.recognition import Ending


class FileStream:
    """The recording of one client, in place of a :class:`serving.live.workers.ClientStream`.

    Args:
        engine: recognises uploaded recordings.
        search: what is to be recognised.
        sample_rate: Hz, of the model.
    """

    look_ahead_seconds = 0.0

    def __init__(self, engine: Engine, search: Search, sample_rate: int):
        self.sample_rate = sample_rate
        self._engine, self._search = engine, search
        self._file = tempfile.NamedTemporaryFile(prefix="upload-")  # noqa: SIM115
        self._results: asyncio.Queue[Message | float | RequestError] = asyncio.Queue()
        self._recognition: asyncio.Task | None = None

    async def feed(self, data: bytes) -> None:
        """Store the next bytes of the file.

        Raises:
            RequestError: there is no space (507).
        """
        try:
            await asyncio.to_thread(self._file.write, data)
        except OSError as error:
            raise not_stored(error) from error

    def end(self) -> None:
        """The file is complete; its messages follow."""
        self._recognition = asyncio.ensure_future(self._recognise())

    def close(self) -> None:
        """Forget the file, whether it was recognised or not."""
        if self._recognition:
            self._recognition.cancel()
        self._file.close()

    async def receive(self) -> Message | float:
        """The next message, or the seconds of the recording at its end.

        Raises:
            RequestError: the file can't be recognised.
        """
        result = await self._results.get()
        if isinstance(result, RequestError):
            raise result
        return result

    async def _recognise(self) -> None:
        utterance = 0
        try:
            await asyncio.to_thread(self._file.flush)
            path = Path(self._file.name)
            with self._engine.admitted():
                async with aclosing(self._engine.segments(path, self._search)) as events:
                    async for event in events:
                        if isinstance(event, Ending):
                            self._results.put_nowait(event.seconds)
                        elif event.times:
                            self._results.put_nowait(final_message(utterance, event))
                            utterance += 1
        except OSError as error:
            self._results.put_nowait(not_stored(error))
        except RequestError as error:
            self._results.put_nowait(error)
