"""What is wrong with an audio file: errors with a hint, and notes on standard error about sound left out."""

import codecs
import re
import sys
from functools import lru_cache

from utils.errors import AudioError

CONVERT_HINT = "convert it, e.g. ffmpeg -i FILE -ac 1 FILE.wav"
AGAIN_HINT = "copy or download it again"
_SHOWN_CHARACTERS = 40  # how much of a text a message shows
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")  # bytes that show that it is not text
_HTML = re.compile(r"<(!doctype html|html|head|body|title)\b", re.IGNORECASE)


class UnknownFormat(AudioError):
    """No decoder reads the file."""


def cut_off(path: object, reason: str) -> AudioError:
    """The error of an audio file that ends before its end."""
    return AudioError(f"the audio file is cut off: {reason}", where=path, hint=AGAIN_HINT)


def without_samples(path: object) -> AudioError:
    """The error of an audio file that is complete but empty."""
    return AudioError("the audio file holds no samples", where=path, hint=AGAIN_HINT)


def not_audio(path: object, reason: str) -> UnknownFormat:
    """The error of a file that no decoder reads."""
    return UnknownFormat(f"not readable as audio ({reason})", where=path, hint=CONVERT_HINT)


def text_error(head: bytes, path: object, hint: str) -> AudioError | None:
    """The error of a text in place of audio, by its first bytes; None if they are not text."""
    text = text_of(head)
    if text is None:
        return None
    kind = "text (HTML)" if _HTML.search(text) else "text"
    message = f"this is {kind}, not audio: it begins with '{text[:_SHOWN_CHARACTERS]}'"
    return AudioError(message, where=path, hint=hint)


def text_of(head: bytes) -> str | None:
    """Bytes decoded as UTF-8 or GB 18030, on one line; None if they are not text."""
    if not head or _CONTROL.search(head):
        return None
    for encoding in ("utf-8", "gb18030"):
        try:  # incremental, because the last character may be incomplete
            return " ".join(codecs.getincrementaldecoder(encoding)().decode(head).split())
        except UnicodeDecodeError:
            continue
    return None


@lru_cache(maxsize=256)
def note(text: str, hint: str) -> None:
    """Print what is left out of a file or folder, and what to do; once in a process."""
    print(f"note: {text}: {hint}", file=sys.stderr)
