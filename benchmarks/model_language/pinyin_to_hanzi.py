"""Pinyin to hanzi: our converter beside all others that can be installed; error rates, speed, memory, size.

    python -m benchmarks.model_language.pinyin_to_hanzi --sentences 200                 # a quick look
    python -m benchmarks.model_language.pinyin_to_hanzi --markdown docs/pinyin_to_hanzi.md
    python -m benchmarks.model_language.pinyin_to_hanzi --model runs/mine runs/other --only ours --keep

The sentences are THCHS-30's test list and AISHELL-1's dev list, with tones, without, and with a tenth of the
syllables mistaken as an acoustic model does. The other converters come from PyPI (``pip install -r
requirements/bench.txt``) and from Debian (benchmarks/converters/debian.py names the packages, which need a
compiler); one that isn't there is left out, and named with its reason. In npm we have found
none that turns pinyin into sentences of hanzi. pinyinIME (PyPI) looks words up but makes no sentences;
pathime (PyPI) needs a library that no registry has. libpinyin takes tones, but its data have none.

The JSON file keeps every figure. Several models can be compared; the first is called "ours".
"""

from __future__ import annotations

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

import psutil
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
from utils.cli import not_negative
from utils.errors import ConfigError, RunError, run_command
from utils.files import write_json
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
    """Find the converters, measure one after the other, keep and show the figures."""
    options = _parser().parse_args(arguments)
    conditions = [one.sampled(options.sentences) for one in read_conditions(options.transcripts)]
    given = sys.argv[1:] if arguments is None else arguments
    results: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "command": shlex.join(["python", "-m", "benchmarks.model_language.pinyin_to_hanzi", *given]),
        "machine": _machine(),
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
            console.print(f"left out: {entry.name}: {missing}", highlight=False)
        _add_kept(results, kept)
        write_json(options.output, results)
    console.print(as_table(results))
    console.print(NOTES)
    if options.markdown:
        write_markdown(options.markdown, results)


def _measured(entry: Entry, conditions: Sequence[Condition]) -> dict[str, Any]:
    """All facts of one converter.

    Raises:
        Missing: it isn't there.
    """
    command = entry.find(PROGRAMS / entry.name.replace(" ", "_").replace("/", "_"))
    found = scores(entry, command, conditions)
    timed = next(one for one in conditions if (one.test_set, one.given) == (AISHELL, TONED))
    return {
        "name": entry.name,
        "version": command.version,
        "licence": entry.licence,
        "tones": entry.tones,
        "most": entry.most,
        "size": command.size,
        "speed": asdict(speed(entry, command, timed.pinyin)),
        "scores": [asdict(score) for score in found],
    }


def _chosen(options: argparse.Namespace) -> list[Entry]:
    """Our models first; of all, those whose names hold what was asked for.

    Raises:
        ConfigError: no converter is called so.
    """
    names = ["ours", *(f"ours, {run.name}" for run in options.model[1:])]
    entries = [our_entry(run, name) for run, name in zip(options.model, names, strict=True)]
    if options.ngram:
        entries.append(our_entry(options.ngram, "Kneser-Ney trigram"))
    entries += OTHERS
    if not options.only:
        return entries
    for part in options.only:
        if not any(part.lower() in entry.name.lower() for entry in entries):
            known = ", ".join(entry.name for entry in entries)
            raise ConfigError(f"no converter is called '{part}'", hint=f"there are: {known}")
    return [one for one in entries if any(part.lower() in one.name.lower() for part in options.only)]


def _kept(path: Path, results: dict[str, Any]) -> dict[str, Any]:
    """What an earlier run has found.

    Raises:
        RunError: there is none, or it was asked something else.
    """
    try:
        earlier = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError("no figures to keep", where=path, hint="leave --keep out") from error
    if any(earlier.get(part) != results[part] for part in ("settings", "machine")):
        what = "the figures there are of other sentences, or of another machine"
        raise RunError(what, where=path, hint="leave --keep out, and measure all anew")
    return earlier


def _add_kept(results: dict[str, Any], kept: dict[str, Any]) -> None:
    """Put earlier figures behind the new ones, and all in the usual order."""
    known = {one["name"] for part in ("converters", "skipped") for one in results[part]}
    order = [entry.name for entry in OTHERS]
    for part in ("converters", "skipped"):
        results[part] += [one for one in kept[part] if one["name"] not in known]
        results[part].sort(key=lambda one: order.index(one["name"]) if one["name"] in order else -1)


def _machine() -> dict[str, Any]:
    return {
        "processor": _processor(),
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _processor() -> str:
    """The processor's name, which Python itself doesn't know on Linux."""
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
    parser.add_argument("--only", nargs="+", metavar="NAME", help="those whose names hold one of these")
    parser.add_argument(
        "--sentences", type=not_negative, default=0, metavar="N", help="of each kind (default: all)"
    )
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="FILE", help="JSON (%(default)s)")
    parser.add_argument("--keep", action="store_true", help="keep its figures of the other converters")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="a document to write the tables into")
    return parser


if __name__ == "__main__":
    run_command(main)
