"""Finds the recordings of a folder: files with a suffix of sound, and others whose content is sound.

Used wherever a folder of recordings is listed; files that can't be read are named on standard error.
"""

import mimetypes
import os
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from utils.audio.decoding import open_sound
from utils.audio.problems import CONVERT_HINT, UnknownFormat, note
from utils.errors import AudioError, printable, unreadable

# Files with these suffixes are recordings without a look into them: corpora have 100,000 files.
AUDIO_SUFFIXES = frozenset(
    (
        ".3gp", ".aac", ".ac3", ".aif", ".aifc", ".aiff", ".amr", ".ape", ".au", ".avi", ".awb", ".caf",
        ".flac", ".flv", ".m4a", ".m4b", ".m4v", ".mka", ".mkv", ".mov", ".mp2", ".mp3", ".mp4", ".mpeg",
        ".mpg", ".mts", ".oga", ".ogg", ".ogv", ".opus", ".rf64", ".snd", ".sph", ".voc", ".w64", ".wav",
        ".wave", ".weba", ".webm", ".wma", ".wmv",
    )
)  # fmt: skip
_SHOWN = 3  # file names in a message


def find_recordings(folder: str | Path) -> list[Path]:
    """All recordings in a folder and its subfolders, sorted.

    Raises:
        AudioError: the folder can't be read, or has no recording.
    """
    found = sorted(Path(folder, name) for name in recording_names(folder))
    if not found:
        raise AudioError("no recordings in this folder", where=folder, hint="give a folder with audio files")
    return found


def recording_names(folder: str | Path) -> Iterator[str]:
    """Paths, relative to a folder, of the recordings in it and its subfolders.

    Files that are neither sound nor text, pictures or the like are named on standard error, and so are
    subfolders that can't be read.

    Raises:
        AudioError: the folder itself can't be read.
    """
    unknown: list[Path] = []
    for name in _file_names(folder):
        path = Path(folder, name)
        if _suffix(name) in AUDIO_SUFFIXES:
            yield name
        elif not _is_other_type(_suffix(name)):
            try:
                with open_sound(path):
                    yield name
            except UnknownFormat:
                unknown.append(path)
            except AudioError:  # text, or empty
                continue
    note_left_out(folder, unknown, "their format can't be read", CONVERT_HINT)


def note_left_out(folder: str | Path, files: Sequence[Path], reason: str, hint: str) -> None:
    """Print that files of a folder are left out, why, and what to do; once in a process."""
    if files:
        shown = ", ".join(map(printable, files[:_SHOWN])) + (", …" if len(files) > _SHOWN else "")
        note(f"{len(files)} files of {printable(folder)} are left out, {reason} ({shown})", hint)


def _file_names(folder: str | Path) -> Iterator[str]:
    """Paths, relative to a folder, of the files in it and its subfolders.

    Hidden files and folders are left out, such as ``._talk.wav`` in archives made on macOS. Links to folders
    are followed after all real folders, each folder once. This is ten times as fast as Path.rglob.
    """
    left_out: list[Path] = []

    def add_left_out(error: OSError) -> None:
        if os.fspath(error.filename) == os.fspath(folder):
            raise unreadable(AudioError, "can't read the folder", folder, error)
        left_out.append(Path(error.filename))

    visited: set[str] = set()
    waiting = deque([os.fspath(folder)])
    while waiting:
        for parent, folders, names in os.walk(waiting.popleft(), onerror=add_left_out):
            real = os.path.realpath(parent)
            if real in visited:
                folders.clear()
                continue
            visited.add(real)
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            # `os.walk` does not enter these by itself.
            links = (Path(parent, name) for name in folders if Path(parent, name).is_symlink())
            waiting.extend(map(os.fspath, links))
            inner = Path(parent).relative_to(folder).as_posix()
            for name in sorted(names):
                if not name.startswith("."):
                    yield name if inner == "." else f"{inner}/{name}"
    note_left_out(folder, left_out, "they are folders that can't be read", "check their permissions")


@cache
def _is_other_type(suffix: str) -> bool:
    """Whether files of a suffix are text, pictures, programs or the like, by Python's own list."""
    kind = mimetypes.MimeTypes().guess_type(f"file{suffix}")[0]
    return kind is not None and not kind.startswith(("audio/", "video/"))


def _suffix(name: str) -> str:
    return os.path.splitext(name)[1].lower()  # noqa: PTH122 - three times as fast as Path, for large corpora
