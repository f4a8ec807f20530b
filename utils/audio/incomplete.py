"""The errors of audio files that are cut off or empty, as after a copy or a download that was interrupted."""

from utils.errors import AudioError

_HINT = "copy or download it again"


def cut_off(path: object, reason: str) -> AudioError:
    """The error of an audio file that ends before its end."""
    return AudioError(f"the audio file is cut off: {reason}", where=path, hint=_HINT)


def without_samples(path: object) -> AudioError:
    """The error of an audio file that is complete but empty."""
    return AudioError("the audio file holds no samples", where=path, hint=_HINT)
