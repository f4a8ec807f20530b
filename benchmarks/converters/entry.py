"""What a converter of the comparison says of itself: name, licence, what it reads, the command that runs it.

Each one runs in a process of its own, which reads lines of syllables and writes lines of hanzi
(native/lines.h says how). So all are timed alike, whatever they are written in, and none is linked into
this project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Sentences of each kind that are enough of a converter that takes 20 ms or more for one; 300 ms or more.
SAMPLE, SMALL_SAMPLE = 1000, 50


class Missing(Exception):
    """This machine can't run a converter; the message says what lacks, and how to get it."""


@dataclass(frozen=True)
class Command:
    """A converter that is there.

    Attributes:
        arguments: what starts it, in the project's folder.
        version: of the package that it comes in.
        size: bytes on disk of what it reads and of its library; not of Python or of a framework.
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
        name: in tables, and of the folder where it may keep files.
        licence: of the library and its data.
        find: ``find(folder)``: the command; the folder is its own, and may not exist yet. Raises
            :class:`Missing`.
        tones: whether it makes use of tones.
        spelling: a canonical syllable, with or without tone, as the converter takes it.
        most: how many sentences of each kind are enough of one that is slow; 0: all.
    """

    name: str
    licence: str
    find: Callable[[Path], Command]
    tones: bool = False
    spelling: Callable[[str], str] = without_tone
    most: int = 0

    def line(self, syllables: Iterable[str]) -> str:
        """A sentence as the converter takes it."""
        return " ".join(self.spelling(syllable) for syllable in syllables)


def bytes_of(paths: Iterable[Path]) -> int:
    """Size of files and of all files in folders; what Python compiles for itself is not counted."""
    files = (file for path in paths for file in ([path] if path.is_file() else path.rglob("*")))
    return sum(file.stat().st_size for file in files if file.is_file() and file.suffix != ".pyc")
