"""Makes a converter of the comparison from a run folder of a language model of this project."""

from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.converters.entry import Command, Entry
from benchmarks.peers.environment import Missing, bytes_of, command
from model_language.pinyin_to_hanzi import PinyinToHanzi
from model_language.registry import load_second_pass
from utils.run_folder.run import PRETRAINED

# Files of a run folder that a converter does not read.
_NOT_READ = {"checkpoint", "logs", "test", "last.weights.h5", "history.csv", "train.log", "metrics.json"}


def our_entry(run: Path, name: str, pinyin: str = "recognised") -> Entry:
    """A run of a language model as a converter of the comparison; ``pinyin``: see :func:`build_ours`."""

    def find(_: Path) -> Command:
        if not run.is_dir():
            source = "the shipped converter" if run == PRETRAINED else "train.py language --run"
            raise Missing(f"{run} does not exist ({source})")
        parts = [path for path in run.iterdir() if path.name not in _NOT_READ]
        return Command(
            command(name, (), "benchmarks.converters.ours:build_ours", str(run.resolve()), pinyin),
            bytes_of(parts),
        )

    return Entry(name, find, tones=True, spelling=str)


def build_ours(run: str, pinyin: str) -> Callable[[Sequence[Sequence[str]]], list[str]]:
    """The converter of ``convert.py``, for lines with a space between all syllables.

    Args:
        run: folder of the run.
        pinyin: ``recognised``, which may be wrong (``convert.py --recognised``), ``typed``, or ``rescored``:
            typed, with a second pass (``convert.py --rescoring-weight 0.2``).
    """
    second_pass = load_second_pass() if pinyin == "rescored" else None
    to_hanzi = PinyinToHanzi(run, recognised=pinyin == "recognised", second_pass=second_pass)
    return lambda sentences: to_hanzi.convert([" ".join(sentence) for sentence in sentences])
