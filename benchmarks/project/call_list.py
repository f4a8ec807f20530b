"""Lists which module calls which for one utterance, traced through train.py and transcribe.py.

    python -m benchmarks.project.call_list
    python -m benchmarks.project.call_list --markdown docs/architecture.md   # writes the lists into the page

A synthetic recording is used for a training step and then transcribed. Each pair of modules is noted once,
with the function of its first call, in the order of the calls, indented by depth. Imports only go downward
(tests/project/test_layers.py), so a call from a lower tier into a higher one is a call of an object that the
higher tier has passed down: a layer of a model, a method of a config, an iterator. Such calls are marked.
"""

from utils.command.entry import run_command

import argparse
import itertools
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.support.commands import ROOT
from tests.project.test_layers import TIER_OF
from tests.support.scripts import load_script
from tests.support.tiny_corpus import write_tiny_corpus
from utils.files import write_text

BEGIN, END = "<!-- calls of benchmarks.project.call_list -->", "<!-- end of the calls -->"
DEEPEST = 5  # calls below this depth are left out of the list
SCRIPT_TIER = max(TIER_OF.values()) + 1


@dataclass(frozen=True)
class Call:
    """One call from a module into another.

    Attributes:
        depth: project modules on the stack above it.
        caller, callee: module and function, such as ``training.loop.train``.
        upward: whether the callee's tier is above the caller's.
    """

    depth: int
    caller: str
    callee: str
    upward: bool


class Trace:
    """Records the first call of each pair of modules."""

    def __init__(self):
        self.calls: dict[tuple[str, str], Call] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """A profile function, see :func:`sys.setprofile`."""
        if event != "call" or (callee := _module(frame)) is None or frame.f_code.co_name == "<module>":
            return
        above = list(_project_frames(frame.f_back))
        if not above or _module(above[0]) == callee:
            return
        caller = _module(above[0])
        if (key := (caller, callee)) in self.calls:
            return
        modules = [_module(each) for each in reversed(above)]
        depth = sum(first != second for first, second in itertools.pairwise(modules)) + 1
        names = [f"{_module(each)}.{each.f_code.co_qualname}" for each in (above[0], frame)]
        self.calls[key] = Call(depth, *names, _tier(callee) > _tier(caller))


def main(arguments: Sequence[str] | None = None) -> int:
    """Trace both commands, print their calls, and write them into a page if asked."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        lists = _traced_commands(Path(folder))
    text = "\n\n".join(f"`{command}`:\n\n```\n{_listing(trace)}\n```" for command, trace in lists.items())
    print(text)
    if options.markdown:
        page = options.markdown.read_text(encoding="utf-8")
        before, after = page.partition(BEGIN)[0], page.partition(END)[2]
        write_text(options.markdown, f"{before}{BEGIN}\n{text}\n{END}{after}")
    return 0


def _traced_commands(folder: Path) -> dict[str, Trace]:
    manifest = write_tiny_corpus(folder / "corpus", utterances=1)
    recipe, run = folder / "recipe.yaml", folder / "run"
    recipe.write_text("model: {name: compact, width: 8, blocks: 1}\nfeatures: {bins: 16}\n", encoding="utf-8")
    lists = [f"data.{split}=[{manifest}]" for split in ("train", "dev")]
    more = ["training.epochs=1", "data.workers=1", f"data.cache={folder / 'cache'}", "augment.copies=0"]
    train = ["speech", "--config", str(recipe), "--run", str(run), "--no-checks", *lists, *more]
    audio = next((folder / "corpus").rglob("*.wav"))
    transcribe = [
        str(audio),
        "--speech",
        str(run),
        "--language",
        str(ROOT / "pretrained" / "pinyin_to_hanzi"),
    ]
    return {
        "train.py speech": _traced(load_script("train.py").main, train),
        "transcribe.py": _traced(load_script("transcribe.py").main, transcribe),
    }


def _traced(command: Callable[[Sequence[str]], int], arguments: Sequence[str]) -> Trace:
    trace = Trace()
    with _profiled(trace):
        command(arguments)
    return trace


@contextmanager
def _profiled(trace: Trace) -> Iterator[None]:
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _project_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """The frames of the project's own code, the innermost first."""
    while frame is not None:
        if _module(frame) is not None:
            yield frame
        frame = frame.f_back


def _module(frame: FrameType) -> str | None:
    """Dotted name of the project's module that the frame runs in; None elsewhere."""
    path = Path(frame.f_code.co_filename)
    if not path.is_relative_to(ROOT) or ".venv" in path.parts or path.is_relative_to(ROOT / "tests"):
        return None
    parts = path.relative_to(ROOT).with_suffix("").parts
    return None if parts[0] == "benchmarks" else ".".join(parts)


def _tier(module: str) -> int:
    return TIER_OF.get(module.partition(".")[0], SCRIPT_TIER)


def _listing(trace: Trace) -> str:
    shown = [call for call in trace.calls.values() if call.depth <= DEEPEST]
    width = max(2 * call.depth + len(call.callee) for call in shown)
    lines = [
        f"{'  ' * (call.depth - 1) + call.callee:<{width}}" + ("  passed down" if call.upward else "")
        for call in shown
    ]
    return "\n".join(line.rstrip() for line in lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="replace the lists in this page")
    return parser


if __name__ == "__main__":
    run_command(main)
