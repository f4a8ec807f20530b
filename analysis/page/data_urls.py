"""Encodes sounds (as MP3) and pictures as data URLs, which embed them in an HTML page."""

import base64
import io
from pathlib import Path

import numpy as np
import soundfile

from utils.audio.reading import read_audio
from utils.files import is_file

PLAYED_RATE = 16_000  # sample rate of embedded sounds, Hz


def sound_address(samples: np.ndarray) -> str:
    """The MP3 of (samples,) in [-1, 1], mono, at :data:`PLAYED_RATE`."""
    encoded = io.BytesIO()
    soundfile.write(encoded, samples, PLAYED_RATE, format="MP3")
    return data_address("audio/mpeg", encoded.getvalue())


def recording_address(audio: str | Path) -> str:
    """A recording as an MP3; ``""`` if the file does not exist any more.

    Raises:
        AudioError: the file cannot be read.
    """
    return sound_address(read_audio(audio, PLAYED_RATE)) if is_file(audio) else ""


def data_address(kind: str, content: bytes) -> str:
    """Bytes of a MIME type as ``data:…``; contains no special characters of HTML."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
