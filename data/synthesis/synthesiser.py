"""Synthesises speech from syllables with espeak-ng, in a child process of each worker.

The child is ``espeak.py``, which describes the messages on the pipe and ends what hangs; it is started again
when it dies. This process never loads espeak-ng.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from tqdm import tqdm

from utils.errors import CorpusError
from utils.mandarin.pinyin import tone_of, without_tone

SAMPLE_RATE = 22050  # Hz, of the child's speech
COMMAND = (sys.executable, "-m", "data.synthesis.espeak")
"""The child; it gets another argument, an empty folder for its own files."""

_MAX_FAILURES = 20  # after more failures, if they are a quarter of the items so far, the command stops
_ROOT = Path(__file__).parents[2]
# Spelled out as English letters by espeak-ng 1.52 when written in pinyin (see espeak.py).
_PHONEMES = {"xiong": "S;'iong", "qiong": "tS;h'iong", "jiong": "tS;'iong"}
_TONE_PHONEMES = {1: "55", 2: "35", 3: "214", 4: "51", 5: "11"}

T = TypeVar("T")
R = TypeVar("R")


class SynthesiserError(CorpusError):
    """The synthesiser crashed or refused this pair of voice and text. Another pair may work."""


class Unspoken(NamedTuple, Generic[T]):
    """An utterance or clip that the synthesiser could not speak, and the reason."""

    item: T
    reason: str


@dataclass(frozen=True)
class Speech:
    """A request for speech; the field names are those on the pipe.

    Attributes:
        voice: a variant, ``"f3"``; empty for espeak-ng's default voice.
        text: the text in the synthesiser's notation (``to_text``).
        speed: words a minute, 80 to 450; usually 175.
        pitch: 0 to 100; usually 50.
        range: range of the pitch, 0 (monotonous) to 100; usually 50.
        definition: lines of a variant file that define the voice; ``voice`` is then only its name.
    """

    voice: str
    text: str
    speed: int = 175
    pitch: int = 50
    range: int = 50
    definition: str = ""


def to_text(syllables: Sequence[str], pauses: Sequence[int] = ()) -> str:
    """Write canonical syllables for the synthesiser, with a comma after those numbered in ``pauses``."""
    words = []
    for number, syllable in enumerate(syllables, 1):
        name = without_tone(syllable)
        word = f"[[{_PHONEMES[name]}{_TONE_PHONEMES[tone_of(syllable)]}]]" if name in _PHONEMES else syllable
        words.append(word + "," if number in pauses else word)
    return " ".join(words)


class Synthesiser:
    """A child process that speaks. It is started by the first request, and restarted after it died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._files: tempfile.TemporaryDirectory | None = None  # of the process

    def __enter__(self) -> Synthesiser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def synthesise(self, speech: Speech) -> np.ndarray:
        """Speak: (samples,) int16 at ``SAMPLE_RATE``.

        Raises:
            SynthesiserError: the child died, refused, or was silent. The next call starts a new one.
        """
        process = self._start()
        assert process.stdin and process.stdout  # pipes
        try:
            process.stdin.write(json.dumps(asdict(speech)).encode() + b"\n")
            process.stdin.flush()
            header = process.stdout.readline()
            reply = json.loads(header) if header else {}
            size = 2 * reply.get("samples", 0)
            data = process.stdout.read(size)
        except BrokenPipeError:
            reply, size, data = {}, 0, b""
        if not reply or len(data) < size:
            self.close()
            raise self._error("the synthesiser died", speech)
        if "error" in reply:
            raise self._error(reply["error"], speech)
        samples = np.frombuffer(data, np.int16)
        if not samples.any():
            raise self._error("the synthesiser was silent", speech)
        return samples

    def close(self) -> None:
        """End the child, if there is one."""
        process, self._process = self._process, None
        if process is not None and self._files is not None:
            process.kill()
            process.communicate()
            self._files.cleanup()

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._files = tempfile.TemporaryDirectory(prefix="espeak-ng-data-")
            self._process = subprocess.Popen(
                (*COMMAND, self._files.name),
                cwd=_ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return self._process

    def _error(self, message: str, speech: Speech) -> SynthesiserError:
        return SynthesiserError(message, where=f"voice {speech.voice or 'plain'!r}, text {speech.text!r}")


def check_installed() -> None:
    """Raise a ``CorpusError`` when the synthesiser's wheel is missing."""
    if importlib.util.find_spec("espeakng_loader") is None:
        raise CorpusError(
            "the speech synthesiser (espeakng-loader) is not installed",
            hint="pip install -r requirements/demo.txt",
        )


def speak_all(
    work: Callable[[T, Synthesiser], R], items: Sequence[T], workers: int, where: Path
) -> tuple[list[R], list[Unspoken[T]]]:
    """Call ``work(item, synthesiser)`` for every item, in parallel and with a progress bar.

    Args:
        work: makes what is wanted of an item; raises :class:`SynthesiserError` if it can't be spoken.
        items: utterances or clips.
        workers: number of synthesisers.
        where: folder of the results, for messages.

    Returns:
        The results in no fixed order, and the items that could not be spoken.

    Raises:
        CorpusError: more than 20 items and more than a quarter of those tried could not be spoken.
    """

    local = threading.local()
    children: list[Synthesiser] = []

    def open_child() -> None:
        local.child = Synthesiser()
        children.append(local.child)

    results: list[R] = []
    unspoken: list[Unspoken[T]] = []
    pool = ThreadPoolExecutor(workers, initializer=open_child)
    try:
        futures = {pool.submit(lambda each: work(each, local.child), item): item for item in items}
        progress = tqdm(as_completed(futures), "speaking", len(items), disable=None)
        for done, future in enumerate(progress, start=1):
            try:
                results.append(future.result())
            except SynthesiserError as error:
                unspoken.append(Unspoken(futures[future], error.message))
                if len(unspoken) > max(_MAX_FAILURES, done // 4):
                    message = f"the synthesiser fails: {error.message}"
                    raise CorpusError(message, where=where, hint="see requirements/demo.txt") from error
    finally:
        pool.shutdown(cancel_futures=True)
        for child in children:
            child.close()
    return results, unspoken
