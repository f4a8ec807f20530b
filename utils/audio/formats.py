"""Names of files → which of them libsndfile can read, and which are recordings of a format that it can't."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import soundfile

# libsndfile's major formats and the endings of their files; what this build of it lacks is left out.
_ENDINGS = {
    "AIFF": (".aif", ".aifc", ".aiff"),
    "AU": (".au", ".snd"),
    "CAF": (".caf",),
    "FLAC": (".flac",),
    "MP3": (".mp3",),
    "NIST": (".sph",),
    "OGG": (".oga", ".ogg", ".opus"),
    "RF64": (".rf64",),
    "VOC": (".voc",),
    "W64": (".w64",),
    "WAV": (".wav", ".wave"),
}
AUDIO_SUFFIXES = frozenset(
    ending for name in soundfile.available_formats() for ending in _ENDINGS.get(name, ())
)
"""Endings of the recordings that can be read."""
UNREADABLE_SUFFIXES = frozenset(
    {".3gp", ".aac", ".ac3", ".amr", ".ape", ".m4a", ".m4b", ".mka", ".mkv", ".mov", ".mp4"}
    | {".webm", ".wma", ".wv", *(ending for endings in _ENDINGS.values() for ending in endings)}
    - AUDIO_SUFFIXES
)
"""Endings of files with sound that can't be read here."""
CONVERT = "convert it, e.g. ffmpeg -i FILE -ac 1 FILE.wav"
_SHOWN = 3


def is_audio(name: str | Path) -> bool:
    """Whether a file's name ends as that of a recording that can be read."""
    return _ending(name) in AUDIO_SUFFIXES


def is_unreadable_audio(name: str | Path) -> bool:
    """Whether a file's name ends as that of a recording of a format that can't be read."""
    return _ending(name) in UNREADABLE_SUFFIXES


def warn_unreadable(folder: str | Path, files: Sequence[Path]) -> None:
    """Say on the standard error which files of a folder are left out, once in a process."""
    if files:
        _note(str(folder), tuple(map(str, files)))


def _ending(name: str | Path) -> str:
    return os.path.splitext(name)[1].lower()  # noqa: PTH122 - corpora have 100,000 files: a third of Path's time


@lru_cache(maxsize=64)
def _note(folder: str, files: tuple[str, ...]) -> None:
    more = ", …" if len(files) > _SHOWN else ""
    left_out = f"{len(files)} files of {folder} are left out, their format can't be read"
    print(f"note: {left_out} ({', '.join(files[:_SHOWN])}{more}): {CONVERT}", file=sys.stderr)
