"""Describes a converter of the comparison: name, licence, spelling of its input, and its command.

Each one runs in a process of its own, which reads lines of syllables and writes lines of hanzi
(native/lines.h describes the protocol). So all converters are timed in the same way, and none is linked into
this project.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Sentences of each kind for a converter that needs 20 ms or more for one; 300 ms or more.
SAMPLE, SMALL_SAMPLE = 1000, 50


class Missing(Exception):
    """A converter cannot run on this machine; the message says what is missing and how to get it."""


@dataclass(frozen=True)
class Command:
    """The command of an installed converter.

    Attributes:
        arguments: the command line, run in the project's folder.
        version: version of its package.
        size: bytes on disk of its library and data, without Python or a framework.
    """

    arguments: tuple[str, ...]
    version: str
    size: int


def without_tone(syllable: str) -> str:
    """``zhong1`` or ``zhong`` → ``zhong``."""
    return syllable.rstrip("12345")


@dataclass(frozen=True)
class Entry:
    """A converter by name.

    Attributes:
        name: its name in tables, and of the folder where it may keep files.
        licence: licence of the library and its data.
        find: ``find(folder)``: the command; the folder is its own, and may not exist yet. Raises
            :class:`Missing`.
        tones: whether it uses tones.
        spelling: a canonical syllable, with or without tone → the spelling that the converter reads.
        limit: largest number of sentences of each kind, for slow converters; 0: all.
    """

    name: str
    licence: str
    find: Callable[[Path], Command]
    tones: bool = False
    spelling: Callable[[str], str] = without_tone
    limit: int = 0

    def line(self, syllables: Iterable[str]) -> str:
        """A sentence as the converter reads it."""
        return " ".join(self.spelling(syllable) for syllable in syllables)


def bytes_of(paths: Iterable[Path]) -> int:
    """Size of files and of all files in folders, without compiled Python code."""
    files = (file for path in paths for file in ([path] if path.is_file() else path.rglob("*")))
    return sum(file.stat().st_size for file in files if file.is_file() and file.suffix != ".pyc")
