"""What all HTML pages share: the Jinja environment, formats of figures, and sounds as data URLs."""

import base64
import io
import json
from pathlib import Path

import numpy as np
import soundfile
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from utils.audio.reading import read_audio
from utils.files import is_file

TEMPLATES = Path(__file__).parent / "templates"
PLAYED_RATE = 16_000  # sample rate of embedded sounds, Hz
THIN = "\u202f"  # narrow no-break space


def page_environment() -> Environment:
    """The environment of ``analysis/page/templates``: all values are escaped, unknown names are errors."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "duration": duration, "number": number, "embedded": embedded}
    return environment


def percent(rate: float, digits: int = 1) -> str:
    """``0.0534`` → ``5.3 %`` (with a narrow no-break space)."""
    return f"{100 * rate:.{digits}f}{THIN}%"


def duration(seconds: float) -> str:
    """``374.2`` → ``6 min 14 s``; from an hour on ``1 h 5 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}{THIN}s" if seconds >= 9.95 else f"{seconds:.1f}{THIN}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}{THIN}min {rest}{THIN}s"
    return f"{minutes // 60}{THIN}h {minutes % 60}{THIN}min"


def number(count: int) -> str:
    """``12345`` → ``12,345``."""
    return f"{count:,}"


def embedded(value: object) -> Markup:
    """A value as JSON for ``<script type="application/json">``; no text in it can close the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))


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
