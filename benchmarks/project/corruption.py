"""Damages files of each kind of folder at random and checks that all commands report the damage.

    python -m benchmarks.project.corruption                         # some hours; --trials 5 for a quick run
    python -m benchmarks.project.corruption --only "speech run" --only bundle

A trial flips a bit of a file, truncates it or swaps two of its lines or blocks, runs every command that opens
the file, and restores the file. A command must name the file (in an error or a finding) or give the same
result as before the damage; anything else is *silent*, and the exit code is 1. The commands that open a file
are recorded on intact folders; the others run once for each kind of damage, unless they are slow. A slow
command runs on the first two damages of each kind.
"""

from utils.command.entry import run_command

import argparse
import logging
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

import keras
import numpy as np

from benchmarks.support.damage_subjects import LANGUAGE, SPEECH, Command, Subject, Workshop
from tests.support.damage import DAMAGE, damage_file
from utils.command.arguments import positive
from utils.errors import RunError, UserError
from utils.run_folder import checksum_files
from utils.text_table import print_table

FOLDER = Path("runs/benchmarks/corruption")
NAMED, EQUAL, SILENT = "named", "equal", "SILENT"
_PARTS = ("logs/", "train.log", "flags.", "failed.tsv", "settings.json", "skipped.tsv", "accuracy_last")
"""Files that no command reads."""
_SLOW_TRIALS = 2

_opened: set[str] = set()


def main() -> int:
    """Create the folders, damage each file, print a table for each folder."""
    options = _parser().parse_args()
    logging.disable(logging.CRITICAL)
    sys.addaudithook(_note_opened)
    everything: Counter[tuple[str, ...]] = Counter()
    for subject in _subjects(Workshop(options.folder.absolute()), options.only):
        counts = Counter(_trials(subject, options.trials))
        everything += counts
        headings = ("file", "damage", "commands", "readings", NAMED, EQUAL, SILENT)
        print_table(subject.name, headings, _rows(counts), left=2)
        print(f"so far: {_totals(everything)}", flush=True)
    return int(any(row[-1] == SILENT for row in everything))


def _subjects(workshop: Workshop, only: Sequence[str]) -> Iterator[Subject]:
    """The folders to damage, each made when it is needed."""

    def selected(name: str) -> bool:
        return not only or any(part in name for part in only)

    for name in SPEECH:
        if selected(f"speech run, {name}"):
            yield workshop.speech(name, every=name == "compact")
    for name in LANGUAGE:
        if selected(f"language run, {name}"):
            yield workshop.language(name, every=name == "transformer")
    if selected("language run, shipped"):
        yield workshop.shipped()
    if selected("keyword run"):
        yield workshop.keyword()
    if selected("bundle"):
        yield workshop.bundle()
    if selected("cache"):
        yield from workshop.caches()


def _trials(subject: Subject, trials: int) -> Iterator[tuple[str, ...]]:
    """(kind of file, kind of damage, command, outcome) of every trial with every command."""
    files = sorted(path for path in subject.folder.rglob("*") if path.is_file() and path.stat().st_size > 1)
    files = [path for path in files if not str(path.relative_to(subject.folder)).startswith(_PARTS)]
    before = {command: _outcome(command) for command in subject.commands}
    for command, (_, error) in before.items():
        if error:
            raise RunError(f"{command.name} fails on an intact folder: {error}", where=subject.folder)
    opened = {command: _opened_by(command) for command in subject.commands}
    for path in files:
        content = path.read_bytes()
        for damage in DAMAGE:
            for seed in range(trials):
                for command in subject.commands:
                    if seed < _tries(command, str(path) in opened[command], trials):
                        try:
                            damage_file(path, damage, np.random.default_rng(seed))
                            outcome = _judged(before[command], _outcome(command), path)
                        finally:
                            path.write_bytes(content)
                        yield _kind(path, subject.folder), damage, command.name, outcome
            keras.backend.clear_session(free_memory=False)


def _tries(command: Command, reads: bool, trials: int) -> int:
    """How many damages of one kind to one file a command is run on."""
    if not reads:
        return 0 if command.slow else 1
    return min(_SLOW_TRIALS, trials) if command.slow else trials


def _note_opened(event: str, arguments: tuple) -> None:
    if event == "open" and isinstance(arguments[0], str):
        _opened.add(arguments[0])


def _opened_by(command: Command) -> set[str]:
    """The files that a command opens."""
    _opened.clear()
    checksum_files._hashes.clear()
    _outcome(command)
    return set(_opened)


def _outcome(command: Command) -> tuple[str, str]:
    """The output of a command, and its error, if any."""
    with redirect_stderr(StringIO()):
        try:
            return command.run(), ""
        except (UserError, OSError) as error:
            return "", f"error: {error}"
        except Exception as error:  # a stack trace counts as silent
            return "", f"{type(error).__name__}: {error}"


def _judged(before: tuple[str, str], after: tuple[str, str], path: Path) -> str:
    if after == before:
        return EQUAL
    if path.name in (after[1] if after[1].startswith("error:") else after[0]):
        return NAMED
    print(f"{SILENT}: {path}\nbefore: {before}\nafter:  {after}", file=sys.stderr)
    return SILENT


def _kind(path: Path, folder: Path) -> str:
    """The file's name without hashes and steps, which differ between runs."""
    name = path.relative_to(folder).as_posix()
    name = re.sub(r"[0-9a-f]{16,20}", "KEY", name)
    return re.sub(r"step_\d+_accuracy_[\d.]+\.weights", "step_*.weights", name)


def _totals(counts: Counter[tuple[str, ...]]) -> str:
    found = _by_outcome(counts)
    return f"{sum(found)} readings, {found[0]} {NAMED}, {found[1]} {EQUAL}, {found[2]} {SILENT}"


def _rows(counts: Counter[tuple[str, ...]]) -> Iterator[tuple[str | int, ...]]:
    """A row for each kind of file and damage: commands, trials and their outcomes."""
    for name, damage in dict.fromkeys(row[:2] for row in counts):
        rows = Counter({row: number for row, number in counts.items() if row[:2] == (name, damage)})
        commands = len({row[2] for row in rows})
        yield name, damage, commands, rows.total(), *_by_outcome(rows)


def _by_outcome(counts: Counter[tuple[str, ...]]) -> list[int]:
    return [sum(n for row, n in counts.items() if row[-1] == outcome) for outcome in (NAMED, EQUAL, SILENT)]


def _parser() -> argparse.ArgumentParser:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument(
        "--trials", type=positive, default=20, help="trials of each kind of damage (default: 20)"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="folders to damage; repeat"
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"default: {FOLDER}")
    return parser


if __name__ == "__main__":
    run_command(main)
