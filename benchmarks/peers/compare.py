"""Compares our functions with those of other libraries: speed in paired runs, and how well the results agree.

    make bench-peers
    python -m benchmarks.peers.compare --only "features" "CTC beam search" --rounds 15
    python -m benchmarks.peers.compare --markdown docs/performance.md

Each side runs in a separate process with one thread, each peer with its pinned packages in a separate
environment (runs/benchmarks/peers/), which is made at the first call. The two processes take turns. The table
has the median of the processor time of both and the median of the ratios: above 1, ours is faster. A peer
that cannot be installed is named with the reason.
"""

from utils.command.entry import run_command

import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers import sequences, sound
from benchmarks.peers.entry import Arrays, Peer, Task
from benchmarks.peers.environment import FOLDER, Missing, command, use_one_thread
from benchmarks.peers.process import PeerProcess
from benchmarks.support.tables import show
from utils.command.arguments import positive
from utils.command.parser import CommandParser
from utils.errors import RunError

TASKS = (*sound.TASKS, *sequences.TASKS)
COLUMNS = ("task", "peer", "peer ms", "ours ms", "ratio", "results")
FEWEST, LONGEST_SECONDS = 3, 60.0  # runs of a slow pair, and the processor time from which a pair is slow


def main() -> None:
    """Compare the chosen tasks; print the table, or write it into a document too."""
    options = _parser().parse_args()
    use_one_thread()
    tasks = [task for task in TASKS if not options.only or task.name in options.only]
    rows = []
    for task in tasks:
        for row in _compared(task, options.rounds):
            print("  ".join(row[2:]), file=sys.stderr, flush=True)
            rows.append(row)
    show("benchmarks.peers.compare", COLUMNS, rows, options.markdown, left=2)


def _compared(task: Task, rounds: int) -> Iterator[Sequence[str]]:
    """The rows of a task, one for each peer."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    inputs = task.inputs()
    file = FOLDER / f"{task.name.replace(' ', '_')}.npz"
    arrays: dict[str, Any] = dict(inputs)
    np.savez(file, **arrays)
    for peer in task.peers:
        name = " ".join([peer.name, *(each.partition("==")[2] for each in peer.requirements[:1])])
        print(f"{task.name}: {name}", file=sys.stderr, flush=True)
        try:
            (ours, theirs), results = _paired(task, peer, file, rounds)
        except (Missing, RunError) as error:
            yield task.name, name, "–", "–", "–", str(error)
            continue
        ratio = statistics.median(other / own for own, other in zip(ours, theirs, strict=True))
        times = [f"{1000 * statistics.median(seconds):.1f}" for seconds in (theirs, ours)]
        yield task.name, name, *times, f"{ratio:.2f}", task.agreement(inputs, *results)


def _paired(task: Task, peer: Peer, inputs: Path, rounds: int) -> tuple[list[list[float]], list[Arrays]]:
    """Processor seconds of our runs and of the peer's, alternately, and the results of both.

    Raises:
        Missing: the peer cannot be installed.
        RunError: one side ends with an error.
    """
    sides = [("ours", (), task.ours), (peer.name, peer.requirements, peer.function)]
    with ExitStack() as stack:
        running = []
        for name, requirements, function in sides:
            timed = (f"{task.module}:{function}", str(inputs))
            arguments = command(name, requirements, "benchmarks.peers.timed:build_timed", *timed)
            running.append(stack.enter_context(PeerProcess(name, arguments)))
        seconds: list[list[float]] = [[], []]
        for number in range(rounds):
            if number >= FEWEST and sum(map(sum, seconds)) > LONGEST_SECONDS:
                break
            for side in (0, 1) if number % 2 else (1, 0):
                seconds[side].append(float(running[side].answers(["run"])[0]))
        results: list[Arrays] = []
        for process in running:
            saved = inputs.with_name(f"{inputs.stem}.result.npz")
            process.answers([f"save {saved}"])
            with np.load(saved) as arrays:
                results.append(dict(arrays))
            saved.unlink()
    return seconds, results


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    names = [task.name for task in TASKS]
    parser.add_argument("--only", nargs="+", choices=names, metavar="TASK", help=f"of {', '.join(names)}")
    parser.add_argument("--rounds", type=positive, default=15, metavar="N", help="runs of each side")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table between its marks")
    return parser


if __name__ == "__main__":
    run_command(main)
