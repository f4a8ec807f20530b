"""Counts which syllables a recogniser confuses, from ``hypotheses.tsv`` files of ``test.py``.

The counts are written as a table with which converters model misrecognised syllables.
"""

from utils.command.entry import run_command

import shlex
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from analysis.errors.alignment import align
from data.manifest import read_rows, read_transcripts
from utils.command.parser import CommandParser
from utils.errors import CorpusError
from utils.mandarin.confusion_statistics import ConfusionStatistics
from utils.mandarin.syllable_distance import syllable_distance

HYPOTHESES_COLUMNS = ("id", "reference_pinyin", "pinyin", "reference_hanzi", "hanzi")  # the first ones
EXAMPLES = """\
examples:
  python test.py speech runs/compact --split dev
  python -m analysis.errors.confusion_counts runs/compact/test/dev/hypotheses.tsv --output noise.tsv
  python -m analysis.errors.confusion_counts a.tsv b.tsv --texts texts.tsv --output noise.tsv

Count on a dev set: a converter must not be trained with errors of the set that it is tested on. Without
--output, the result is only printed.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, count, print the shares and write the table."""
    options = _parser().parse_args(arguments)
    spoken = chain.from_iterable(
        transcript.pinyin for path in options.texts for transcript in read_transcripts(path)
    )
    noise = ConfusionStatistics.count(chain.from_iterable(map(aligned_syllables, options.hypotheses)), spoken)
    shares = shares_text(noise)
    print(shares)
    if options.output:
        texts = ["--texts", *options.texts] if options.texts else []
        words = map(shlex.quote, map(str, (*options.hypotheses, *texts)))
        command = ["python -m analysis.errors.confusion_counts", *words]
        heading = "Syllables that acoustic models confuse. Counted by:"
        noise.save(options.output, (heading, " ".join(command), shares))
        print(f"written: {options.output}")


def aligned_syllables(path: str | Path) -> Iterator[tuple[str | None, str | None]]:
    """Aligned (reference, hypothesis) syllables of a ``hypotheses.tsv``; None for a missing side.

    Raises:
        CorpusError: the file cannot be read, or is not a ``hypotheses.tsv``.
    """
    rows = read_rows(path)
    if not rows or tuple(rows[0][1][: len(HYPOTHESES_COLUMNS)]) != HYPOTHESES_COLUMNS:
        raise CorpusError("not a hypotheses.tsv", where=path, hint="test.py writes this file")
    for number, fields in rows[1:]:
        if len(fields) < len(HYPOTHESES_COLUMNS):
            raise CorpusError(
                f"{len(fields)} fields",
                where=f"{path}:{number}",
                hint=f"test.py writes at least {len(HYPOTHESES_COLUMNS)}",
            )
        for pair in align(fields[1].split(), fields[2].split(), syllable_distance):
            yield pair.reference, pair.hypothesis


def shares_text(noise: ConfusionStatistics) -> str:
    """One line: the number of errors, and the share of each kind."""
    shares = ", ".join(f"{name} {share:.1%}" for name, share in noise.fractions.items())
    return f"{noise.errors} errors among {noise.syllables} syllables: {shares}"


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__, epilog=EXAMPLES)
    parser.add_argument(
        "hypotheses", nargs="+", type=Path, help="hypotheses.tsv of test.py; their counts are added"
    )
    parser.add_argument("--texts", nargs="*", type=Path, default=[], help="manifests, to count the syllables")
    parser.add_argument("--output", type=Path, help="file for the table")
    return parser


if __name__ == "__main__":
    run_command(main)
