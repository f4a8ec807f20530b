r"""Runs a Python converter as a process: lines of syllables in, lines of hanzi out (native/lines.h).

    echo "jin1 tian1 tian1 qi4 hen3 hao3" | python -m benchmarks.converters.serve \
        benchmarks.converters.ours:build_ours runs/demo/language typed

Only the named module is imported, so that the requirements of other converters do not slow its start.
"""

from utils.command.entry import run_command

import argparse
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

Convert = Callable[[Sequence[Sequence[str]]], list[str]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the converter of ``module:function`` with the other arguments; convert until the input ends."""
    options = _parser().parse_args(arguments)
    module, function = options.function.split(":")
    output, sys.stdout = sys.stdout.buffer, sys.stderr  # the output of libraries is not a conversion
    convert = getattr(importlib.import_module(module), function)(*options.values)
    for texts in serve(convert, sys.stdin.buffer):
        output.write("".join(f"{text}\n" for text in texts).encode())
        output.flush()


def serve(convert: Convert, lines: Iterable[bytes]) -> Iterator[list[str]]:
    """The conversions of the lines before each empty line, and before the end, as one batch each."""
    batch: list[list[str]] = []
    for line in lines:
        if syllables := line.decode().split():
            batch.append(syllables)
        elif batch:
            yield convert(batch)
            batch = []
    if batch:
        yield convert(batch)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("function", metavar="module:function", help="builds the converter")
    parser.add_argument("values", nargs="*", help="its arguments")
    return parser


if __name__ == "__main__":
    run_command(main)
