"""Pinyin to hanzi: our converter compared with other installable ones: error rates, speed, memory, size.

    python -m benchmarks.model_language.pinyin_to_hanzi --sentences 200                 # a quick look
    python -m benchmarks.model_language.pinyin_to_hanzi --markdown docs/pinyin_to_hanzi.md
    python -m benchmarks.model_language.pinyin_to_hanzi --model runs/mine runs/other --only ours

The sentences are THCHS-30's test set and AISHELL-1's dev set, with tones, without tones, and with
recognition errors of an acoustic model in a tenth of the syllables. The other converters come from PyPI, each
in an environment of its own, and from Debian (benchmarks/converters/debian.py names the packages, which need
a compiler); a missing one is skipped and named with the reason. npm has none that converts pinyin to
sentences of hanzi. pinyinIME (PyPI) looks up words but makes no sentences; pathime (PyPI) needs a library
that is in no registry. libpinyin accepts tones, but its data have none.

Several models can be compared; the first is called "ours". Ours takes the pinyin as a recogniser's, which may
be wrong, and in rows of their own as typed, every syllable correct, without and with a language model that
rescores the best conversions.
"""

from utils.command.entry import run_command

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.converters import debian, dictionary, pinyin2hanzi, simplepinyin
from benchmarks.converters.entry import Entry
from benchmarks.converters.ours import our_entry
from benchmarks.peers.environment import Missing
from benchmarks.support.converter_scores import error_rates, speed
from benchmarks.support.pinyin_sentences import AISHELL, TONED, TONELESS, Condition, read_conditions
from benchmarks.support.tables import show
from utils.command.arguments import not_negative
from utils.command.parser import CommandParser
from utils.errors import ConfigError, RunError
from utils.run_folder.run import PRETRAINED

PROGRAMS = Path("runs/benchmarks/converters")
TRANSCRIPTS = Path("../shared/data/transcripts")
OTHERS: tuple[Entry, ...] = (
    *dictionary.ENTRIES,
    *debian.ENTRIES,
    *simplepinyin.ENTRIES,
    *pinyin2hanzi.ENTRIES,
)
BLIND, SAMPLED = "°", "†"
SPEED = ("sentences/s", "one sentence, ms", "start, s", "memory, MB", "disk, MB")
NOTES = (
    "CER of hanzi in %; 10 % wrong: every tenth syllable replaced, left out or joined by another, as our "
    "acoustic models mistake them (`benchmarks/support/pinyin_noise.py`), so that one left out costs at "
    f"least one error. {BLIND} makes no use of tones. {SAMPLED} slow: a fixed sample of the sentences. "
    "AISHELL-1 writes 余 as 馀, which counts as an error of every converter. "
    "simplepinyin has probably seen AISHELL-1. Speed: AISHELL-1 dev in batches, a process of its own; "
    "one sentence: the median of single sentences; start: until the first sentence is there; memory: the "
    "most that the process has held; disk: the library and its data, without Python and frameworks."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Find the converters, measure one after the other, show the results."""
    options = _parser().parse_args(arguments)
    conditions = [each.sampled(options.sentences) for each in read_conditions(options.transcripts)]
    rows = []
    for entry in _chosen(options):
        try:
            rows.append(_measured(entry, conditions))
        except (Missing, RunError) as error:
            print(f"skipped: {entry.name}: {error}", file=sys.stderr)
            continue
        print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    columns = ("converter", *(f"{each.test_set}: {each.given}" for each in conditions), *SPEED)
    show("benchmarks.model_language.pinyin_to_hanzi", columns, rows, options.markdown, NOTES)


def _measured(entry: Entry, conditions: Sequence[Condition]) -> list[str]:
    """The row of one converter.

    Raises:
        Missing: it is not installed.
        RunError: it ends with an error.
    """
    command = entry.find(PROGRAMS / entry.name.replace(" ", "_").replace("/", "_"))
    rates = error_rates(entry, command, conditions)
    timed = next(each for each in conditions if (each.test_set, each.given) == (AISHELL, TONED))
    found = speed(entry, command, timed.pinyin)
    return [
        entry.name + (f" {SAMPLED}" if entry.limit else ""),
        *(
            f"{100 * rate:.2f}" + (BLIND if not entry.tones and condition.given != TONELESS else "")
            for rate, condition in zip(rates, conditions, strict=True)
        ),
        f"{found.sentences_a_second:,.0f}",
        f"{found.milliseconds:,.1f}",
        f"{found.start_seconds:.1f}",
        f"{found.peak_memory / 1e6:,.0f}",
        f"{command.size / 1e6:,.0f}",
    ]


def _chosen(options: argparse.Namespace) -> list[Entry]:
    """Our models, then the others; with ``--only``, those whose names contain one of its parts.

    Raises:
        ConfigError: no converter has such a name.
    """
    names = ["ours", *(f"ours, {run.name}" for run in options.model[1:])]
    entries = [our_entry(run, name) for run, name in zip(options.model, names, strict=True)]
    entries.insert(1, our_entry(options.model[0], "ours, as typed pinyin", "typed"))
    entries.insert(2, our_entry(options.model[0], "ours, typed, with a second pass", "rescored"))
    entries += OTHERS
    if not options.only:
        return entries
    for part in options.only:
        if not any(part.lower() in entry.name.lower() for entry in entries):
            known = ", ".join(entry.name for entry in entries)
            raise ConfigError(f"no converter has the name '{part}'", hint=f"known are: {known}")
    return [entry for entry in entries if any(part.lower() in entry.name.lower() for part in options.only)]


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument("--transcripts", type=Path, default=TRANSCRIPTS, metavar="DIR")
    parser.add_argument(
        "--model", type=Path, nargs="+", default=[PRETRAINED], metavar="RUN", help="ours (the shipped one)"
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="names of converters, or parts of them")
    parser.add_argument(
        "--sentences", type=not_negative, default=0, metavar="N", help="sentences of each kind (default: all)"
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table between its marks")
    return parser


if __name__ == "__main__":
    run_command(main)
