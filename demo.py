"""Run the whole project in one command: synthesise a corpus, train and test two models, write a page.

Every stage is a command that you could type yourself; it is printed before it runs.
"""

from utils.command.entry import run_command

import argparse
import datetime
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

from analysis.demo.summary_page import write_summary_page
from analysis.page.rendering import duration, percent
from data.manifest import read_manifest
from utils.files import write_json
from utils.run_folder.environment import machine, package_versions
from utils.stop_signals import forward_sigterm

EXAMPLES = """\
examples:
  python demo.py              # everything; a second call continues where the first one stopped
  python demo.py --list       # only print the commands

Needs no network. Files are in datasets/demo and runs/demo; delete these two folders to start again.
"""

ROOT = Path(__file__).parent
DATASET, RUNS = Path("datasets/demo"), Path("runs/demo")
CORPUS, SPEECH, LANGUAGE, TEST = DATASET / "corpus", RUNS / "speech", RUNS / "language", RUNS / "test"
TRANSCRIPTS, PAGE, SUMMARY = RUNS / "transcripts", RUNS / "summary.html", RUNS / "summary.json"
REPORT = RUNS / "report"
TIMES = RUNS / "seconds.json"  # the duration of each stage when it was done, kept between calls
SIZES = {"train": 6500, "dev": 300, "test": 600}
SEED = 1  # of the corpus; the recipe was tuned with 0, that is with other voices and sentences
TRANSCRIBED = 4  # recordings of the test set, of different speakers
RECORDINGS = "RECORDINGS"  # placeholder in a command for files of the test set, which exist when it runs

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
OUTPUTS = {
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
        name: key of its duration in ``summary.json``.
        title: shown in the terminal and on the page.
        commands: run one after another, as typed into a shell; ``python`` stands for this interpreter.
        finished: a file that exists if an earlier call has done this stage; None: the stage is always
        repeated.
    """

    name: str
    title: str
    commands: tuple[str, ...]
    finished: Path | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all stages; write ``summary.json`` and the page; print the results and the paths of all files."""
    options = _parser().parse_args(arguments)
    stages = demo_stages()
    if options.list:
        print("\n".join(command for stage in stages for command in stage.commands))
        return 0
    print("a corpus, two models, a test: some minutes. Ctrl-C is safe: the next call continues from there.")
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
    """Print and run the commands of a stage; return the first exit code that isn't 0, otherwise 0."""
    for command in stage.commands:
        if RECORDINGS in command:
            command = command.replace(RECORDINGS, shlex.join(map(str, recordings())))
        print(f"$ {command}", flush=True)
        words = [sys.executable if word == "python" else word for word in shlex.split(command)]
        with subprocess.Popen(words, cwd=ROOT) as process, forward_sigterm(process):
            try:
                code = process.wait()
            except KeyboardInterrupt:
                # The child receives Ctrl-C too: wait until it has written its checkpoint.
                process.wait()
                raise
        if code:
            return (
                code if code > 0 else 128 - code
            )  # negative: ended by a signal; shells use 128 + its number
    return 0


def recordings(manifest: Path = DATASET / "test.tsv") -> list[Path]:
    """Recordings of different speakers in the test set, relative to the project's folder."""
    by_speaker: dict[str, Path] = {}
    for utterance in read_manifest(ROOT / manifest):
        by_speaker.setdefault(utterance.speaker, utterance.audio)
    paths = [path.absolute() for path in by_speaker.values()][:TRANSCRIBED]
    return [path.relative_to(ROOT) if path.is_relative_to(ROOT) else path for path in paths]


def _finish(summary: dict[str, Any], stages: Sequence[Stage]) -> None:
    """Collect the results, write ``summary.json`` and the page, print the results."""
    results = _read_json(ROOT / TEST / "results.json")
    summary = {
        **{name: results[name] for name in FIGURES if name in results},
        **summary,
        "commands": [command for stage in stages for command in stage.commands],
        "transcripts": _transcripts(),
        "outputs": {title: str(path) for title, path in OUTPUTS.items()},
        "machine": _machine(),
        "finished": datetime.datetime.now().astimezone().isoformat(" ", "minutes"),
    }
    write_json(ROOT / SUMMARY, summary)
    write_summary_page(ROOT / RUNS)
    print("\n== done\n\nreference and recognised text:")
    for transcript in summary["transcripts"]:
        print(f"  {transcript['reference']}\n  {transcript['hanzi'] or '(nothing)'}\n")
    voices = f"{summary['utterances']} utterances of {summary['speakers']} unseen voices"
    for name in ("syllable_error_rate", "cer", "sentence_error_rate"):
        low, high = summary["intervals"][name]
        title = name.replace("_", " ").replace("cer", "character error rate")
        print(f"{title:>22} {percent(summary[name]):>7}   (95 % interval {percent(low)} to {percent(high)})")
    print(f"{'on':>22} {voices}, in {duration(sum(summary['seconds'].values()))}\n")
    for title, path in summary["outputs"].items():
        print(f"{title:>28}  {path}")


def _transcripts() -> list[dict[str, str]]:
    """The transcript of each recording by ``transcribe.py``, and its reference."""
    references = {item.id: item.hanzi for item in read_manifest(ROOT / DATASET / "test.tsv")}
    transcripts = []
    for audio in recordings():
        hanzi = _read_json(ROOT / TRANSCRIPTS / f"{audio.stem}.json")["hanzi"]
        transcripts.append({"audio": str(audio), "reference": references[audio.stem], "hanzi": hanzi})
    return transcripts


def _machine() -> str:
    computer = machine()
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    version = package_versions([backend]).get(backend, "")  # of tensorflow-cpu, for example, not known
    versions = f"Python {platform.python_version()}, {backend} {version}".rstrip()
    return f"{computer['cores']} cores, {computer['memory_gib']:.0f} GiB, {computer['system']}; {versions}"


def _known_times(path: Path) -> dict[str, float]:
    """Seconds of the stages of earlier calls; empty if the file is missing or damaged."""
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
