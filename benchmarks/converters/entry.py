"""Describes a converter of the comparison: name, spelling of its input, and its command.

Each one runs in a process of its own, which reads lines of syllables and writes lines of hanzi
(:mod:`benchmarks.peers.serve`). So all converters are timed in the same way, and none is linked into this
project.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.environment import bytes_of, command

# Sentences of each kind for a converter that needs 20 ms or more for one; 300 ms or more.
SAMPLE, SMALL_SAMPLE = 1000, 50


@dataclass(frozen=True)
class Command:
    """The command of an installed converter.

    Attributes:
        arguments: the command line, run in the project's folder.
        size: bytes on disk of its library and data, without Python or a framework.
    """

    arguments: tuple[str, ...]
    size: int


def without_tone(syllable: str) -> str:
    """``zhong1`` or ``zhong`` → ``zhong``."""
    return syllable.rstrip("12345")


@dataclass(frozen=True)
class Entry:
    """A converter by name.

    Attributes:
        name: its name in tables, and of the folder where it may keep files.
        find: ``find(folder)``: the command; the folder is its own, and may not exist yet. Raises
            :class:`~benchmarks.peers.environment.Missing`.
        tones: whether it uses tones.
        spelling: a canonical syllable, with or without tone → the spelling that the converter reads.
        limit: largest number of sentences of each kind, for slow converters; 0: all.
    """

    name: str
    find: Callable[[Path], Command]
    tones: bool = False
    spelling: Callable[[str], str] = without_tone
    limit: int = 0

    def line(self, syllables: Iterable[str]) -> str:
        """A sentence as the converter reads it."""
        return " ".join(self.spelling(syllable) for syllable in syllables)


def in_package(package: str, requirements: tuple[str, ...], builder: str) -> Callable[[Path], Command]:
    """A function that finds a converter whose library is a Python package.

    Args:
        package: name of the package, for its import.
        requirements: pinned packages of its environment, the package first.
        builder: ``module:function`` of this folder that builds the converter.
    """

    def find(_: Path) -> Command:
        arguments = command(package, requirements, f"benchmarks.converters.{builder}")
        folders = (Path(arguments[0]).parents[1] / "lib").glob(f"python*/site-packages/{package}")
        return Command(arguments, bytes_of(folders))

    return find
