"""Records from the default microphone with sounddevice and yields blocks of samples, until Ctrl-C."""

import contextlib
import importlib
import queue
from collections.abc import Iterator
from typing import Any

import numpy as np

from utils.audio.reading import at_rate
from utils.errors import AudioError

_TIMEOUT_SECONDS = 5.0  # a microphone that delivers nothing for so long was disconnected


def microphone_blocks(sample_rate: int, seconds: float) -> Iterator[np.ndarray]:
    """Record from the default microphone, at its own rate with resampling if it lacks ``sample_rate``.

    Args:
        sample_rate: Hz.
        seconds: length of a block, if the caller is not slower than the microphone.

    Yields:
        (samples,) float32 in [-1, 1]: all that has arrived since the last block, and at least ``seconds``.

    Raises:
        AudioError: sounddevice, PortAudio or the microphone is missing, or it is busy or was disconnected.
    """
    try:
        sounddevice: Any = importlib.import_module("sounddevice")
    except (ImportError, OSError) as error:  # OSError: the package is installed, the PortAudio library isn't
        raise AudioError(
            f"the microphone can't be opened ({error})",
            hint="pip install -r requirements/microphone.txt; on Linux also the package libportaudio2",
        ) from error
    blocks: queue.Queue[np.ndarray] = queue.Queue()

    def keep(samples: np.ndarray, *_: Any) -> None:
        blocks.put(samples[:, 0].copy())

    def open_at(rate: int) -> Any:
        size = round(seconds * rate)
        return sounddevice.InputStream(rate, size, channels=1, dtype="float32", callback=keep)

    rate = sample_rate
    try:
        try:
            microphone = open_at(rate)
        except sounddevice.PortAudioError:  # many devices only know 44.1 and 48 kHz
            rate = _own_rate(sounddevice)
            microphone = open_at(rate)
        microphone.start()  # a device that is busy or was unplugged may open, but not start
    except sounddevice.PortAudioError as error:
        raise AudioError(
            f"the microphone can't be opened ({error})", hint="connect one, or give files or - for a pipe"
        ) from error
    with contextlib.closing(microphone):
        yield from at_rate(_arrived_blocks(blocks), rate, sample_rate)


def _own_rate(sounddevice: Any) -> int:
    """The rate of the default microphone, in Hz.

    Raises:
        PortAudioError: there is no microphone.
    """
    return round(sounddevice.query_devices(kind="input")["default_samplerate"])


def _arrived_blocks(blocks: queue.Queue[np.ndarray]) -> Iterator[np.ndarray]:
    while True:
        try:
            arrived = [blocks.get(timeout=_TIMEOUT_SECONDS)]
            while not blocks.empty():
                arrived.append(blocks.get())
            yield np.concatenate(arrived)
        except queue.Empty:
            raise AudioError(
                "the microphone gives no more audio", hint="check that it is still connected"
            ) from None
