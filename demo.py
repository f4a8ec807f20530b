"""The whole job from one command: a corpus is spoken, two models are trained, tested and used.

Every stage is a command that you could type yourself, printed before it runs. At the end a page shows it all.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from analysis.demo.summary_page import write_summary_page
from analysis.page.rendering import duration, percent
from data.manifest import read_manifest
from utils.errors import run_command
from utils.files import write_json
from utils.stop_signals import forward_sigterm

EXAMPLES = """\
examples:
  python demo.py              # everything; a second call finds what is finished and goes on from there
  python demo.py --list       # only print the commands

Needs no network. Files go below datasets/demo and runs/demo; delete these two folders to start anew.
"""

ROOT = Path(__file__).parent
DATASET, RUNS = Path("datasets/demo"), Path("runs/demo")
CORPUS, SPEECH, LANGUAGE, TEST = DATASET / "corpus", RUNS / "speech", RUNS / "language", RUNS / "test"
TRANSCRIPTS, PAGE, SUMMARY = RUNS / "transcripts", RUNS / "summary.html", RUNS / "summary.json"
REPORT = RUNS / "report"
TIMES = RUNS / "seconds.json"  # what each stage took when it was really done, kept from call to call
SIZES = {"train": 6500, "dev": 300, "test": 600}
SEED = 1  # of the corpus; the recipe was settled on 0, so these voices and sentences had no part in it
TRANSCRIBED = 4
RECORDINGS = "RECORDINGS"  # in a command: some files of the test set, which are known when it runs

FIGURES = (
    "utterances",
    "speakers",
    "syllable_error_rate",
    "toneless_syllable_error_rate",
    "tone_error_rate",
    "cer",
    "cer_from_gold_pinyin",
    "sentence_error_rate",
    "intervals",
    "audio_seconds",
    "real_time_factor",
    "seen_in_training",
)
PLACES = {
    "corpus, in THCHS-30’s layout": CORPUS,
    "manifests": DATASET,
    "acoustic model": SPEECH,
    "language model": LANGUAGE,
    "figures and hypotheses": TEST,
    "summary, one page": PAGE,
    "every error explained, one page": REPORT / "report.html",
    "summary for machines": SUMMARY,
}


@dataclass(frozen=True)
class Stage:
    """A part of the demo.

    Attributes:
        name: key of its time in ``summary.json``.
        title: what the reader of the terminal and of the page sees.
        commands: run one after another, as typed into a shell; ``python`` stands for this interpreter.
        finished: a file that is there when an earlier call did this stage; None: it is always done anew.
    """

    name: str
    title: str
    commands: tuple[str, ...]
    finished: Path | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all stages; write ``summary.json`` and the page; print the figures and where everything lies."""
    options = _parser().parse_args(arguments)
    stages = demo_stages()
    if options.list:
        print("\n".join(command for stage in stages for command in stage.commands))
        return 0
    print("a corpus, two models, a test: some minutes. Ctrl-C is safe: the next call goes on from there.")
    made = _known_times(ROOT / TIMES)
    summary: dict[str, Any] = {"seconds": {}, "titles": {}, "reused": []}
    for number, stage in enumerate(stages, start=1):
        print(f"\n== {number} of {len(stages)}: {stage.title}", flush=True)
        reused = stage.finished is not None and (ROOT / stage.finished).is_file()
        began = time.monotonic()
        code = run_stage(stage)
        if code:
            print(f"the demo stops here: '{stage.title}' ended with exit code {code}", file=sys.stderr)
            return code
        seconds = round(time.monotonic() - began, 1)
        summary["seconds"][stage.name] = seconds
        summary["titles"][stage.name] = stage.title
        if reused:
            summary["reused"].append(stage.name)
        else:
            made[stage.name] = seconds
            write_json(ROOT / TIMES, made)
    _finish({**summary, "seconds_when_made": made}, stages)
    return 0


def demo_stages() -> list[Stage]:
    """The demo's stages, with the very commands that a user would type."""
    sizes = [f"--{split} {size}" for split, size in SIZES.items()]
    corpus = "python -m data.corpora.synthetic"
    return [
        Stage(
            "corpus",
            "a corpus is spoken by synthetic voices, and prepared",
            (
                f"{corpus} generate {CORPUS} {' '.join(sizes)} --seed {SEED}",
                f"{corpus} prepare {CORPUS} --output {DATASET}",
            ),
            DATASET / "summary.json",
        ),
        Stage(
            "train_speech",
            "the acoustic model learns: audio to tonal pinyin",
            (f"python train.py speech --config configs/demo/speech.yaml --run {SPEECH}",),
            SPEECH / "metrics.json",
        ),
        Stage(
            "train_language",
            "the language model learns: pinyin to hanzi",
            (f"python train.py language --config configs/demo/language.yaml --run {LANGUAGE}",),
            LANGUAGE / "metrics.json",
        ),
        Stage(
            "test",
            "both are tested on unseen voices and unseen sentences",
            (f"python test.py pipeline {SPEECH} {LANGUAGE} --beam 10 --output {TEST} --report {REPORT}",),
        ),
        Stage(
            "transcribe",
            "a few files are transcribed",
            (
                f"python transcribe.py {RECORDINGS} --speech {SPEECH} --language {LANGUAGE} "
                f"--format json --output {TRANSCRIPTS}",
            ),
        ),
    ]


def run_stage(stage: Stage) -> int:
    """Run a stage's commands, each printed before; returns the first exit code that isn't 0, else 0."""
    for command in stage.commands:
        if RECORDINGS in command:
            command = command.replace(RECORDINGS, shlex.join(str(one) for one in recordings()))
        print(f"$ {command}", flush=True)
        words = [sys.executable if word == "python" else word for word in shlex.split(command)]
        with subprocess.Popen(words, cwd=ROOT) as process, forward_sigterm(process):
            try:
                code = process.wait()
            except KeyboardInterrupt:
                # The child has got Ctrl-C as well: let it write its checkpoint.
                process.wait()
                raise
        if code:
            return code if code > 0 else 128 - code  # ended by a signal: as shells say it
    return 0


def recordings(manifest: Path = DATASET / "test.tsv") -> list[Path]:
    """Some recordings of the test set, of different speakers, relative to the project's folder."""
    speakers: dict[str, Path] = {}
    for one in read_manifest(ROOT / manifest):
        speakers.setdefault(one.speaker, one.audio)
    found = [path.absolute() for path in speakers.values()][:TRANSCRIBED]
    return [path.relative_to(ROOT) if path.is_relative_to(ROOT) else path for path in found]


def _finish(summary: dict[str, Any], stages: Sequence[Stage]) -> None:
    """Gather the figures, write ``summary.json`` and the page, print both."""
    results = _read_json(ROOT / TEST / "results.json")
    summary = {
        **{name: results[name] for name in FIGURES if name in results},
        **summary,
        "commands": [command for stage in stages for command in stage.commands],
        "transcripts": _transcripts(),
        "places": {what: str(place) for what, place in PLACES.items()},
        "machine": _machine(),
        "finished": datetime.datetime.now().astimezone().isoformat(" ", "minutes"),
    }
    write_json(ROOT / SUMMARY, summary)
    write_summary_page(ROOT / RUNS)
    print("\n== done\n\nwhat was said, and what was recognised:")
    for one in summary["transcripts"]:
        print(f"  {one['reference']}\n  {one['hanzi'] or '(nothing)'}\n")
    voices = f"{summary['utterances']} utterances of {summary['speakers']} unseen voices"
    for name in ("syllable_error_rate", "cer", "sentence_error_rate"):
        low, high = summary["intervals"][name]
        title = name.replace("_", " ").replace("cer", "character error rate")
        print(f"{title:>22} {percent(summary[name]):>7}   (95 % interval {percent(low)} to {percent(high)})")
    print(f"{'on':>22} {voices}, in {duration(sum(summary['seconds'].values()))}\n")
    for what, place in summary["places"].items():
        print(f"{what:>28}  {place}")


def _transcripts() -> list[dict[str, str]]:
    """What ``transcribe.py`` wrote for each recording, beside what was said."""
    said = {one.id: one.hanzi for one in read_manifest(ROOT / DATASET / "test.tsv")}
    found = []
    for audio in recordings():
        transcript = _read_json(ROOT / TRANSCRIPTS / f"{audio.stem}.json")
        found.append({"audio": str(audio), "reference": said[audio.stem], "hanzi": transcript["hanzi"]})
    return found


def _machine() -> str:
    memory = psutil.virtual_memory().total / 2**30
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    versions = f"Python {platform.python_version()}, {backend} {importlib.metadata.version(backend)}"
    return (
        f"{psutil.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.machine()}; {versions}"
    )


def _known_times(path: Path) -> dict[str, float]:
    """Seconds of stages that an earlier call did; none known without its file, or if that is damaged."""
    try:
        return {name: float(seconds) for name, seconds in _read_json(path).items()}
    except (OSError, ValueError, AttributeError):
        return {}


def _read_json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="print the commands of all stages, run nothing")
    return parser


if __name__ == "__main__":
    run_command(main)
