"""Runs a task in a separate process: reads lines ``run`` and ``save FILE``, prints processor seconds.

echo run | python -m benchmarks.peers.serve benchmarks.peers.sound:our_features INPUTS.npz
"""

from utils.command.entry import run_command

import argparse
import importlib
import sys
import time
from collections.abc import Sequence

import numpy as np

from benchmarks.converters.serve import serve


def main(arguments: Sequence[str] | None = None) -> None:
    """Prepare the work of ``module:function`` with the inputs; run it until the input ends."""
    options = _parser().parse_args(arguments)
    module, function = options.function.split(":")
    output, sys.stdout = sys.stdout.buffer, sys.stderr  # the output of libraries is not an answer
    with np.load(options.inputs) as file:
        work = getattr(importlib.import_module(module), function)(dict(file))
    results = work()  # the first run compiles, loads and fills caches

    def answer(lines: Sequence[Sequence[str]]) -> list[str]:
        nonlocal results
        seconds = []
        for command, *values in lines:
            began = time.process_time()
            if command == "run":
                results = work()
            else:
                np.savez(values[0], **results)
            seconds.append(str(time.process_time() - began))
        return seconds

    for texts in serve(answer, sys.stdin.buffer):
        output.write("".join(f"{text}\n" for text in texts).encode())
        output.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("function", metavar="module:function", help="prepares the work")
    parser.add_argument("inputs", metavar="INPUTS", help=".npz file of the inputs")
    return parser


if __name__ == "__main__":
    run_command(main)
