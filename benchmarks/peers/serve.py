r"""Runs a function as a process: lines of words in, a line for each out, an empty line ends a batch.

    echo "jin1 tian1 tian1 qi4 hen3 hao3" | python -m benchmarks.peers.serve \
        benchmarks.converters.ours:build_ours runs/demo/language typed

Every peer runs so, in an environment of its own, and ours beside it. native/lines.h of the converters has the
same protocol in C++. Only the named module is imported, so that other peers' requirements do not matter.
"""

from utils.command.entry import run_command

import argparse
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

Answer = Callable[[Sequence[Sequence[str]]], list[str]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the answering function of ``module:function`` with the other arguments; answer all batches."""
    options = _parser().parse_args(arguments)
    module, function = options.function.split(":")
    output, sys.stdout = sys.stdout.buffer, sys.stderr  # the output of libraries is not an answer
    answer = getattr(importlib.import_module(module), function)(*options.values)
    for texts in serve(answer, sys.stdin.buffer):
        output.write("".join(f"{text}\n" for text in texts).encode())
        output.flush()


def serve(answer: Answer, lines: Iterable[bytes]) -> Iterator[list[str]]:
    """The answers to the lines before each empty line, and before the end, as one batch each."""
    batch: list[list[str]] = []
    for line in lines:
        if words := line.decode().split():
            batch.append(words)
        elif batch:
            yield answer(batch)
            batch = []
    if batch:
        yield answer(batch)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("function", metavar="module:function", help="builds the answering function")
    parser.add_argument("values", nargs="*", help="its arguments")
    return parser


if __name__ == "__main__":
    run_command(main)
