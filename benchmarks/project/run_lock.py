"""Starts two trainings on one run folder: one must be refused, and the other can be resumed after a kill.

    python -m benchmarks.project.run_lock [--trials 10] [--longest 30]

Each trial starts `train.py` twice with the same command, the second 0 to `--longest` seconds after the first.
One of them must be refused (exit code 2) with the process id of the other. The other is then killed with
SIGKILL, and the same command must resume from the checkpoint; SIGTERM must end it with exit code 143. A trial
takes about half a minute plus the delay.
"""

from utils.command.entry import run_command

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from utils.errors import TrainingError
from utils.files import write_text
from utils.run_folder.run import RunFolder
from utils.text_table import print_table

ROOT = Path(__file__).resolve().parents[2]
SENTENCES = ("ni3 hao3\t你好", "wo3 hao3\t我好", "ta1 hao3\t他好", "ni3 shi4 shui2\t你是谁")
TIMEOUT_SECONDS = 600.0  # time limit to load and to compute the first steps


@dataclass(frozen=True)
class Trial:
    """The result of a trial.

    Attributes:
        delay: seconds from the first start to the second.
        refused: the process that was refused, ``first`` or ``second``.
        message: its output.
        named: whether the output has the process id of the other.
        resumed: whether the same command resumed after SIGKILL.
        stopped: its exit code after SIGTERM.
    """

    delay: float
    refused: str
    message: str
    named: bool
    resumed: bool
    stopped: int

    @property
    def passed(self) -> bool:
        """Whether all results are as expected."""
        return self.named and self.resumed and self.stopped == 128 + signal.SIGTERM


def main() -> int:
    """Run the trials and print a table.

    Raises:
        TrainingError: a trial failed.
    """
    options = _parser().parse_args()
    trials = []
    for delay in np.linspace(0, options.longest, options.trials):
        with tempfile.TemporaryDirectory(prefix="run-lock-") as folder:
            trials.append(_trial(Path(folder), float(delay)))
        print(trials[-1], file=sys.stderr)
    _print(trials)
    if failed := [trial for trial in trials if not trial.passed]:
        raise TrainingError(f"{len(failed)} of {len(trials)} trials failed", hint="see the table")
    return 0


def _trial(folder: Path, delay: float) -> Trial:
    run, command = RunFolder(folder / "run"), _command(folder)
    processes = {"first": _start(command, folder / "first.txt")}
    time.sleep(delay)
    processes["second"] = _start(command, folder / "second.txt")
    try:
        _wait(lambda: any(process.poll() is not None for process in processes.values()))
        refused = next(name for name, process in processes.items() if process.poll() is not None)
        holder = processes["first" if refused == "second" else "second"]
        message = (folder / f"{refused}.txt").read_text(encoding="utf-8")
        named = processes[refused].returncode == 2 and f"(process {holder.pid} on " in message
        _wait(run.checkpoint.is_file)
        holder.kill()
        holder.wait()
        again = processes["again"] = _start(command, folder / "again.txt")
        _wait(lambda: again.poll() is not None or "resumed at epoch" in run.log.read_text(encoding="utf-8"))
        resumed = again.poll() is None
        before = run.checkpoint.stat().st_mtime_ns
        _wait(lambda: again.poll() is not None or run.checkpoint.stat().st_mtime_ns > before)
        again.terminate()
        return Trial(delay, refused, message, named, resumed, again.wait(TIMEOUT_SECONDS))
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


def _command(folder: Path) -> list[str]:
    """The command of a long training of a small Transformer."""
    text, recipe = folder / "text.tsv", folder / "recipe.yaml"
    write_text(text, "".join(f"{number}\t{sentence}\n" for number, sentence in enumerate(SENTENCES)))
    write_text(recipe, "model: {name: transformer, width: 16, heads: 2, blocks: 1}\n")
    data = [f"data.train=[{text}]", f"data.dev=[{text}]", f"data.cache={folder / 'cache'}"]
    run = ["--config", str(recipe), "--run", str(folder / "run")]
    return [sys.executable, "train.py", "language", *run, *data, "training.epochs=20000"]


def _start(command: list[str], output: Path) -> subprocess.Popen[bytes]:
    with output.open("wb") as file:
        return subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT)


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TrainingError(f"nothing happened in {TIMEOUT_SECONDS:.0f} s", hint="is the machine busy?")
        time.sleep(0.1)


def _print(trials: list[Trial]) -> None:
    columns = ("delay", "refused", "names the other", "resumed after SIGKILL", "exit code after SIGTERM")
    rows = []
    for trial in trials:
        yes_no = ["yes" if value else "NO" for value in (trial.named, trial.resumed)]
        rows.append([f"{trial.delay:.1f} s", trial.refused, *yes_no, str(trial.stopped)])
    print_table("Two trainings on one run folder", columns, rows, left=0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=10, help="default: %(default)s")
    parser.add_argument("--longest", type=float, default=30.0, help="longest delay, in s; default: 30")
    return parser


if __name__ == "__main__":
    run_command(main)
