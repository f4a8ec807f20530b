"""Pinyin to hanzi: our converter compared with other installable ones: error rates, speed, memory, size.

    python -m benchmarks.model_language.pinyin_to_hanzi --sentences 200                 # a quick look
    python -m benchmarks.model_language.pinyin_to_hanzi --markdown docs/pinyin_to_hanzi.md
    python -m benchmarks.model_language.pinyin_to_hanzi --model runs/mine runs/other --only ours --keep

The sentences are THCHS-30's test set and AISHELL-1's dev set, with tones, without tones, and with
recognition errors of an acoustic model in a tenth of the syllables. The other converters come from PyPI
(``pip install -r requirements/bench.txt``) and from Debian (benchmarks/converters/debian.py names the
packages, which need a compiler); a missing one is skipped and named with the reason. npm has none that
converts pinyin to sentences of hanzi. pinyinIME (PyPI) looks up words but makes no sentences; pathime (PyPI)
needs a library that is in no registry. libpinyin accepts tones, but its data have none.

The JSON file contains all results. Several models can be compared; the first is called "ours". Ours takes the
pinyin as a recogniser's, which may be wrong, and in rows of their own as typed, every syllable correct,
without and with a language model that rescores the best conversions.
"""

from utils.command.entry import run_command

import argparse
import datetime
import json
import platform
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.converters import debian, dictionary, pinyin2hanzi, simplepinyin
from benchmarks.converters.entry import Entry, Missing
from benchmarks.converters.ours import our_entry
from benchmarks.support.converter_scores import scores, speed
from benchmarks.support.converter_table import NOTES, WIDTH, as_table, write_markdown
from benchmarks.support.pinyin_sentences import (
    AISHELL,
    NOISE_RATE,
    SEED,
    TONED,
    Condition,
    read_conditions,
)
from utils.command.arguments import not_negative
from utils.errors import ConfigError, RunError
from utils.files import write_json
from utils.run_folder.environment import machine
from utils.run_folder.run import PRETRAINED

RESULTS = Path("runs/benchmarks/pinyin_to_hanzi.json")
PROGRAMS = Path("runs/benchmarks/converters")
TRANSCRIPTS = Path("../shared/data/transcripts")
OTHERS: tuple[Entry, ...] = (
    *dictionary.ENTRIES,
    *debian.ENTRIES,
    *simplepinyin.ENTRIES,
    *pinyin2hanzi.ENTRIES,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Find the converters, measure one after the other, save and show the results."""
    options = _parser().parse_args(arguments)
    conditions = [each.sampled(options.sentences) for each in read_conditions(options.transcripts)]
    given = sys.argv[1:] if arguments is None else arguments
    results: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "command": shlex.join(["python", "-m", "benchmarks.model_language.pinyin_to_hanzi", *given]),
        "machine": {"processor": _processor(), "python": platform.python_version(), **machine()},
        "settings": {"sentences": options.sentences, "noise_rate": NOISE_RATE, "seed": SEED},
        "converters": [],
        "skipped": [],
    }
    chosen = _chosen(options)
    kept = _kept(options.output, results) if options.keep else {"converters": [], "skipped": []}
    terminal = Console()
    console = Console(width=max(WIDTH, terminal.width))
    for entry in chosen:
        try:
            results["converters"].append(_measured(entry, conditions))
        except Missing as missing:
            results["skipped"].append({"name": entry.name, "reason": str(missing)})
            console.print(f"skipped: {entry.name}: {missing}", highlight=False)
        _add_kept(results, kept)
        write_json(options.output, results)
    console.print(as_table(results))
    console.print(NOTES)
    if options.markdown:
        write_markdown(options.markdown, results)


def _measured(entry: Entry, conditions: Sequence[Condition]) -> dict[str, Any]:
    """All results of one converter.

    Raises:
        Missing: it is not installed.
    """
    command = entry.find(PROGRAMS / entry.name.replace(" ", "_").replace("/", "_"))
    found = scores(entry, command, conditions)
    timed = next(each for each in conditions if (each.test_set, each.given) == (AISHELL, TONED))
    return {
        "name": entry.name,
        "version": command.version,
        "licence": entry.licence,
        "tones": entry.tones,
        "most": entry.limit,
        "size": command.size,
        "speed": asdict(speed(entry, command, timed.pinyin)),
        "scores": [asdict(score) for score in found],
    }


def _chosen(options: argparse.Namespace) -> list[Entry]:
    """Our models, then the others; with ``--only``, those whose names contain one of its parts.

    Raises:
        ConfigError: no converter has such a name.
    """
    names = ["ours", *(f"ours, {run.name}" for run in options.model[1:])]
    entries = [our_entry(run, name) for run, name in zip(options.model, names, strict=True)]
    entries.insert(1, our_entry(options.model[0], "ours, as typed pinyin", "typed"))
    entries.insert(2, our_entry(options.model[0], "ours, typed, with a second pass", "rescored"))
    if options.ngram:
        entries.append(our_entry(options.ngram, "Kneser-Ney trigram"))
    entries += OTHERS
    if not options.only:
        return entries
    for part in options.only:
        if not any(part.lower() in entry.name.lower() for entry in entries):
            known = ", ".join(entry.name for entry in entries)
            raise ConfigError(f"no converter has the name '{part}'", hint=f"known are: {known}")
    return [entry for entry in entries if any(part.lower() in entry.name.lower() for part in options.only)]


def _kept(path: Path, results: dict[str, Any]) -> dict[str, Any]:
    """The results of an earlier run.

    Raises:
        RunError: there are none, or they belong to other settings.
    """
    try:
        earlier = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError("no results to keep", where=path, hint="leave --keep out") from error
    if any(earlier.get(part) != results[part] for part in ("settings", "machine")):
        message = "the existing results are from other sentences or from another machine"
        raise RunError(message, where=path, hint="leave --keep out to measure all converters again")
    return earlier


def _add_kept(results: dict[str, Any], kept: dict[str, Any]) -> None:
    """Add earlier results to the new ones, in the usual order."""
    known = {entry["name"] for part in ("converters", "skipped") for entry in results[part]}
    order = [entry.name for entry in OTHERS]
    for part in ("converters", "skipped"):
        results[part] += [entry for entry in kept[part] if entry["name"] not in known]
        results[part].sort(key=lambda entry: order.index(entry["name"]) if entry["name"] in order else -1)


def _processor() -> str:
    """The name of the processor, which Python does not report on Linux."""
    try:
        rows = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        rows = []
    return next(
        (row.split(":", 1)[1].strip() for row in rows if row.startswith("model name")), platform.processor()
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--transcripts", type=Path, default=TRANSCRIPTS, metavar="DIR")
    parser.add_argument(
        "--model", type=Path, nargs="+", default=[PRETRAINED], metavar="RUN", help="ours (the shipped one)"
    )
    parser.add_argument("--ngram", type=Path, metavar="RUN", help="a Kneser-Ney trigram (train.py language)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="names of converters, or parts of them")
    parser.add_argument(
        "--sentences", type=not_negative, default=0, metavar="N", help="sentences of each kind (default: all)"
    )
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="FILE", help="JSON (%(default)s)")
    parser.add_argument("--keep", action="store_true", help="keep the results of the other converters")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables into this document")
    return parser


if __name__ == "__main__":
    run_command(main)
