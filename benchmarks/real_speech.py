"""Real recordings: what each part of the training data contributes, end to end into hanzi.

    python -m benchmarks.real_speech [--hours 20] [--only everything]

Needs the project's shared recordings and texts beside the checkout; says so and stops where they are
absent. Trains `compact` once for each mixture, all with the same number of audio seconds seen, and a
trigram on open-domain text; decodes both lists of real test speakers with the ordinary commands.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.shared_parts.commands import run
from benchmarks.shared_parts.open_text import SHARED, easily_spoken, open_domain_lines
from data.manifest import read_manifest, write_manifest
from utils.errors import run_command
from utils.files import write_json, write_text

WORK = Path("datasets/real_speech")
RUNS = Path("runs/real_speech")
SYNTHETIC_SENTENCES = 6_000
LANGUAGE_LINES = 400_000
TESTS = {
    "same speaker": WORK / "aishell" / "test_same_speaker.tsv",
    "other speaker": WORK / "aishell" / "test_other_speaker.tsv",
    "spoken words, other speakers": WORK / "dspspeech20" / "test.tsv",
}


@dataclass(frozen=True)
class Mixture:
    """Train manifests and how often an epoch reads each."""

    name: str
    train: tuple[str, ...]
    weights: tuple[float, ...]


SYNTHETIC, SPEAKER = str(WORK / "synthetic" / "train.tsv"), str(WORK / "aishell" / "learn.tsv")
DEV = WORK / "aishell" / "hold.tsv"
WORDS, SPOKEN = str(WORK / "words" / "manifest.tsv"), str(WORK / "dspspeech20" / "train.tsv")
MIXTURES = (
    Mixture("synthetic only", (SYNTHETIC,), (1,)),
    Mixture("one real speaker only", (SPEAKER,), (1,)),
    Mixture("synthetic + one real speaker", (SYNTHETIC, SPEAKER), (1, 6)),
    Mixture("everything", (SYNTHETIC, SPEAKER, WORDS, SPOKEN), (1, 6, 2, 2)),
)


def main() -> int:
    """Prepare, train each mixture, test, print one table."""
    options = _parser().parse_args()
    _prepare_text()
    _prepare_corpora()
    language = RUNS / "trigram"
    run(
        "train.py",
        "language",
        "--config",
        "configs/language/ngram_text.yaml",
        "--run",
        str(language),
        f"data.train=[{WORK / 'language.txt'}]",
        f"data.dev=[{WORK / 'synthetic' / 'dev.tsv'}]",
    )
    rows = []
    for mixture in MIXTURES:
        if options.only and mixture.name != options.only:
            continue
        rows.append({"mixture": mixture.name, **_train_and_test(mixture, language, options.hours)})
        write_json(RUNS / "results.json", rows)
    _print(rows)
    return 0


def _prepare_text() -> None:
    """Open-domain lines: some to be spoken by the synthesiser, more for the language model."""
    if (WORK / "language.txt").is_file():
        return
    chosen = open_domain_lines(seed=0)
    spoken = easily_spoken(chosen, SYNTHETIC_SENTENCES + 400)
    write_text(WORK / "spoken.txt", "".join(f"{line}\n" for line in spoken))
    known = set(spoken)  # the language model's dev sentences are among them
    read = [line for line in chosen[: LANGUAGE_LINES + len(spoken)] if line not in known][:LANGUAGE_LINES]
    write_text(WORK / "language.txt", "".join(f"{line}\n" for line in read))


def _prepare_corpora() -> None:
    synthetic = ("-m", "data.corpora.synthetic")
    run(
        *synthetic,
        "generate",
        str(WORK / "synthetic_corpus"),
        "--text",
        str(WORK / "spoken.txt"),
        "--train",
        str(SYNTHETIC_SENTENCES),
        "--dev",
        "200",
        "--test",
        "200",
    )
    run(*synthetic, "prepare", str(WORK / "synthetic_corpus"), "--output", str(WORK / "synthetic"))
    for name, folder in (
        ("aishell", "aishell1_two_speakers"),
        ("words", "words_one_speaker_mp3"),
        ("dspspeech20", "dspspeech20"),
    ):
        run(
            "-m",
            "data.corpora.listed",
            "prepare",
            str(SHARED / "audio" / folder),
            "--output",
            str(WORK / name),
        )
    # The best epoch is picked on every twelfth training sentence, never on a test list.
    utterances = read_manifest(WORK / "aishell" / "train.tsv")
    write_manifest(SPEAKER, [u for index, u in enumerate(utterances) if index % 12])
    write_manifest(DEV, utterances[::12])


def _train_and_test(mixture: Mixture, language: Path, hours: float) -> dict[str, float]:
    name = mixture.name.replace(" + ", " and ").replace(" ", "_")
    folder = RUNS / f"{name}_{hours:g}h"
    epoch_hours = sum(
        weight * sum(utterance.seconds for utterance in read_manifest(path)) / 3600
        for path, weight in zip(mixture.train, mixture.weights, strict=True)
    )
    epochs = max(1, round(hours / epoch_hours))
    run(
        "train.py",
        "speech",
        "--config",
        "configs/speech/compact_real.yaml",
        "--run",
        str(folder),
        f"data.train=[{','.join(mixture.train)}]",
        f"data.weights={list(mixture.weights)}",
        f"data.dev=[{DEV}]",
        f"training.epochs={epochs}",
    )
    figures = {"epochs": epochs}
    for name, manifest in TESTS.items():
        results = run(
            "test.py",
            "pipeline",
            str(folder),
            str(language),
            "--json",
            "--manifest",
            str(manifest),
        )
        figures[name] = json.loads(results)
    return figures


def _print(rows: list[dict]) -> None:
    table = Table(title="compact on real speech: tonal syllable error / hanzi CER, %")
    for title in ("trained on", "epochs", *TESTS):
        table.add_column(title)
    for row in rows:
        cells = [f"{100 * row[t]['syllable_error_rate']:.1f} / {100 * row[t]['cer']:.1f}" for t in TESTS]
        table.add_row(row["mixture"], str(row["epochs"]), *cells)
    Console().print(table)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hours", type=float, default=20.0, help="hours of audio each training sees")
    parser.add_argument("--only", choices=[mixture.name for mixture in MIXTURES], help="one mixture")
    return parser


if __name__ == "__main__":
    run_command(main)
