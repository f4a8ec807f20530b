"""Makes a converter of the comparison from a run folder of a language model of this project."""

from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.converters.entry import Command, Entry, Missing, bytes_of
from benchmarks.converters.python_package import served
from model_language.pinyin_to_hanzi import PinyinToHanzi
from utils.run_folder.run import PRETRAINED, RunFolder, open_run

LICENCE = "the project's own"
# Files of a run folder that a converter does not read.
_NOT_READ = {"checkpoint", "logs", "test", "last.weights.h5", "history.csv", "train.log", "metrics.json"}


def our_entry(run: Path, name: str, builder: str = "build_ours") -> Entry:
    """A run of a language model as a converter of the comparison; ``builder``: a function of this module."""

    def find(_: Path) -> Command:
        if not run.is_dir():
            source = "the shipped converter" if run == PRETRAINED else "train.py language --run"
            raise Missing(f"{run} does not exist ({source})")
        version = _revision(open_run(run, task="language"))
        parts = [path for path in run.iterdir() if path.name not in _NOT_READ]
        return Command(served(f"ours:{builder}", str(run.resolve())), version, bytes_of(parts))

    return Entry(name, LICENCE, find, tones=True, spelling=str)


def build_ours(run: str) -> Callable[[Sequence[Sequence[str]]], list[str]]:
    """The converter of ``convert.py --recognised``, for lines with a space between all syllables."""
    to_hanzi = PinyinToHanzi(run, recognised=True)
    return lambda sentences: to_hanzi.convert([" ".join(sentence) for sentence in sentences])


def build_ours_typed(run: str) -> Callable[[Sequence[Sequence[str]]], list[str]]:
    """The converter of ``convert.py`` without options, which takes every syllable as correct."""
    to_hanzi = PinyinToHanzi(run)
    return lambda sentences: to_hanzi.convert([" ".join(sentence) for sentence in sentences])


def _revision(run: RunFolder) -> str:
    values = run.config().get("environment") or {}
    return str(values.get("git_revision", ""))[:7]
