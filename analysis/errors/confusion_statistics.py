"""Hypotheses of ``test.py`` in; how often which syllable is mistaken for which, as a table for utils, out."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from analysis.errors.alignment import align
from analysis.inputs.text_files import OURS
from data.manifest import read_rows, read_transcripts
from utils.errors import CorpusError, run_command
from utils.mandarin.confusion_statistics import ConfusionStatistics
from utils.mandarin.syllable_distance import syllable_distance

EXAMPLES = """\
examples:
  python test.py speech runs/compact --split dev
  python -m analysis.errors.confusion_statistics runs/compact/test/dev/hypotheses.tsv --output noise.tsv
  python -m analysis.errors.confusion_statistics a.tsv b.tsv --texts texts.tsv --output noise.tsv

Count them on a dev set: what a converter is trained with must not come from the set that it is tested on.
Without --output nothing is written, only shown.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, count, show the shares and write the table."""
    options = _parser().parse_args(arguments)
    spoken = chain.from_iterable(one.pinyin for path in options.texts for one in read_transcripts(path))
    noise = ConfusionStatistics.count(chain.from_iterable(map(aligned_syllables, options.hypotheses)), spoken)
    found = shares_text(noise)
    print(found)
    if options.output:
        texts = ["--texts", *options.texts] if options.texts else []
        quoted = (shlex.quote(str(one)) for one in (*options.hypotheses, *texts))
        command = ["python -m analysis.errors.confusion_statistics", *quoted]
        heading = "What acoustic models mistake. Counted by:"
        noise.save(options.output, (heading, " ".join(command), found, *options.note))
        print(f"written: {options.output}")


def aligned_syllables(path: str | Path) -> Iterator[tuple[str | None, str | None]]:
    """Pairs of (said, heard) of all utterances of a ``hypotheses.tsv``; what is missing is None.

    Raises:
        CorpusError: the file can't be read or is another.
    """
    rows = read_rows(path)
    if not rows or tuple(rows[0][1][: len(OURS)]) != OURS:
        raise CorpusError("this is no hypotheses.tsv", where=path, hint="test.py writes them")
    for number, fields in rows[1:]:
        if len(fields) < len(OURS):
            raise CorpusError(f"{len(fields)} fields", where=f"{path}:{number}", hint="test.py writes more")
        for pair in align(fields[1].split(), fields[2].split(), syllable_distance):
            yield pair.reference, pair.hypothesis


def shares_text(noise: ConfusionStatistics) -> str:
    """One line: how many errors, and which share of them is of what kind."""
    shares = ", ".join(f"{name} {share:.1%}" for name, share in noise.fractions.items())
    return f"{noise.errors} errors among {noise.syllables} syllables: {shares}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("hypotheses", nargs="+", type=Path, help="hypotheses.tsv of test.py; all count alike")
    parser.add_argument(
        "--texts", nargs="*", type=Path, default=[], help="manifests: how frequent syllables are"
    )
    parser.add_argument("--output", type=Path, help="file for the table")
    parser.add_argument("--note", nargs="*", default=[], metavar="LINE", help="to stand at the table's head")
    return parser


if __name__ == "__main__":
    run_command(main)
