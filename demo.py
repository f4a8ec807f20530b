"""Run the whole project in one command: synthesise a corpus, train and test two models, write a report.

Every stage is a command that you could type yourself; it is printed before it runs.
"""

from utils.command.entry import run_command

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.page.rendering import duration, percent
from data.manifest import read_manifest
from utils.command.parser import CommandParser
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
TRANSCRIPTS, REPORT = RUNS / "transcripts", RUNS / "report"
SIZES = {"train": 6500, "dev": 300, "test": 600}
SEED = 1  # of the corpus; the recipe was tuned with 0, that is with other voices and sentences
TRANSCRIBED = 4  # recordings of the test set, of different speakers
RECORDINGS = "RECORDINGS"  # placeholder in a command for files of the test set, which exist when it runs

OUTPUTS = {
    "corpus, in THCHS-30’s layout": CORPUS,
    "manifests": DATASET,
    "acoustic model": SPEECH,
    "language model": LANGUAGE,
    "figures and hypotheses": TEST,
    "every error explained, one page": REPORT / "report.html",
}


@dataclass(frozen=True)
class Stage:
    """A part of the demo.

    Attributes:
        title: shown in the terminal.
        commands: run one after another, as typed into a shell; ``python`` stands for this interpreter.
    """

    title: str
    commands: tuple[str, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all stages; print the results and the paths of all files."""
    options = _parser().parse_args(arguments)
    stages = demo_stages()
    if options.list:
        print("\n".join(command for stage in stages for command in stage.commands))
        return 0
    print("a corpus, two models, a test: some minutes. Ctrl-C is safe: the next call continues from there.")
    began = time.monotonic()
    for number, stage in enumerate(stages, start=1):
        print(f"\n== {number} of {len(stages)}: {stage.title}", flush=True)
        code = run_stage(stage)
        if code:
            print(f"the demo stops here: '{stage.title}' ended with exit code {code}", file=sys.stderr)
            return code
    _print_results(time.monotonic() - began)
    return 0


def demo_stages() -> list[Stage]:
    """The demo's stages, with the very commands that a user would type."""
    sizes = [f"--{split} {size}" for split, size in SIZES.items()]
    corpus = "python -m data.corpora.synthetic"
    return [
        Stage(
            "a corpus is spoken by synthetic voices, and prepared",
            (
                f"{corpus} generate {CORPUS} {' '.join(sizes)} --seed {SEED}",
                f"{corpus} prepare {CORPUS} --output {DATASET}",
            ),
        ),
        Stage(
            "the acoustic model learns: audio to tonal pinyin",
            (f"python train.py speech --config configs/demo/speech.yaml --run {SPEECH}",),
        ),
        Stage(
            "the language model learns: pinyin to hanzi",
            (f"python train.py language --config configs/demo/language.yaml --run {LANGUAGE}",),
        ),
        Stage(
            "both are tested on unseen voices and unseen sentences",
            (f"python test.py pipeline {SPEECH} {LANGUAGE} --beam 10 --output {TEST} --report {REPORT}",),
        ),
        Stage(
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


def _print_results(seconds: float) -> None:
    """Print the transcripts, the error rates of the test and the paths of all files."""
    results = _read_json(ROOT / TEST / "results.json")
    print("\n== done\n\nreference and recognised text:")
    for reference, hanzi in _transcripts():
        print(f"  {reference}\n  {hanzi or '(nothing)'}\n")
    voices = f"{results['utterances']} utterances of {results['speakers']} unseen voices"
    for name in ("syllable_error_rate", "cer", "sentence_error_rate"):
        low, high = results["intervals"][name]
        title = name.replace("_", " ").replace("cer", "character error rate")
        print(f"{title:>22} {percent(results[name]):>7}   (95 % interval {percent(low)} to {percent(high)})")
    print(f"{'on':>22} {voices}, in {duration(seconds)}\n")
    for title, path in OUTPUTS.items():
        print(f"{title:>31}  {path}")


def _transcripts() -> list[tuple[str, str]]:
    """The reference of each transcribed recording, and its transcript by ``transcribe.py``."""
    references = {item.id: item.hanzi for item in read_manifest(ROOT / DATASET / "test.tsv")}
    return [
        (references[audio.stem], _read_json(ROOT / TRANSCRIPTS / f"{audio.stem}.json")["hanzi"])
        for audio in recordings()
    ]


def _read_json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__, epilog=EXAMPLES)
    parser.add_argument("--list", action="store_true", help="print the commands of all stages, run nothing")
    return parser


if __name__ == "__main__":
    run_command(main)
