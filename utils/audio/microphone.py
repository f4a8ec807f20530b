"""Records from the default microphone with sounddevice and yields blocks of samples, until Ctrl-C."""

import importlib
import queue
from collections.abc import Iterator
from typing import Any

import numpy as np

from utils.errors import AudioError

_TIMEOUT_SECONDS = 5.0  # a microphone that delivers nothing for so long was disconnected


def microphone_blocks(sample_rate: int, seconds: float) -> Iterator[np.ndarray]:
    """Record from the default microphone.

    Args:
        sample_rate: Hz.
        seconds: length of a block.

    Yields:
        (samples,) float32 in [-1, 1].

    Raises:
        AudioError: no sounddevice, no PortAudio, no microphone, or one that was disconnected.
    """
    try:
        sounddevice: Any = importlib.import_module("sounddevice")
    except (ImportError, OSError) as error:  # OSError: the package is installed, the PortAudio library isn't
        raise AudioError(
            f"the microphone can't be opened ({error})",
            hint="pip install -r requirements/microphone.txt; on Linux also the package libportaudio2",
        ) from error
    blocks: queue.Queue[np.ndarray] = queue.Queue()
    size = round(seconds * sample_rate)

    def keep(samples: np.ndarray, *_: Any) -> None:
        blocks.put(samples[:, 0].copy())

    try:
        microphone = sounddevice.InputStream(sample_rate, size, channels=1, dtype="float32", callback=keep)
    except sounddevice.PortAudioError as error:
        raise AudioError(
            f"the microphone can't be opened ({error})", hint="connect one, or give files or - for a pipe"
        ) from error
    with microphone:
        while True:
            try:
                yield blocks.get(timeout=_TIMEOUT_SECONDS)
            except queue.Empty:
                raise AudioError(
                    "the microphone gives no more audio", hint="check that it is still connected"
                ) from None
