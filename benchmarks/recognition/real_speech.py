"""Measures the contribution of each part of the training data on real recordings, from audio to hanzi.

    python -m benchmarks.recognition.real_speech [--hours 20] [--only everything]

Needs the project's shared recordings and texts beside the checkout; without them it stops with a message.
Trains `compact` once for each mixture, all with the same number of audio seconds seen, and n-grams of hanzi
and of syllables on open-domain text; decodes both lists of real test speakers, and spoken words of speakers
outside the training, with the ordinary commands: greedily, and with the syllable n-gram in the beam.

The last mixture begins with the model of `python -m benchmarks.model_speech.acoustic`: run that first.
"""

from utils.command.entry import run_command

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

from benchmarks.support.commands import run
from benchmarks.support.open_text import SHARED, easily_spoken, open_domain_lines
from data.manifest import read_manifest, write_manifest
from utils.files import write_json, write_text
from utils.text_table import print_table

WORK = Path("datasets/real_speech")
RUNS = Path("runs/real_speech")
OPEN_DOMAIN = "runs/open_domain/seed_2/compact"
SYNTHETIC_SENTENCES = 6_000
LANGUAGE_LINES = 400_000
TESTS = {
    "same speaker": WORK / "aishell" / "test_same_speaker.tsv",
    "other speaker": WORK / "aishell" / "test_other_speaker.tsv",
    "spoken words, other speakers": WORK / "dspspeech20" / "test.tsv",
}


@dataclass(frozen=True)
class Mixture:
    """Training manifests, how often an epoch reads each, and other differences from the recipe."""

    name: str
    train: tuple[str, ...]
    weights: tuple[float, ...]
    changes: tuple[str, ...] = ()


SYNTHETIC, SPEAKER = str(WORK / "synthetic" / "train.tsv"), str(WORK / "aishell" / "learn.tsv")
DEV = WORK / "aishell" / "hold.tsv"
WORDS, SPOKEN = str(WORK / "words" / "manifest.tsv"), str(WORK / "dspspeech20" / "train.tsv")
MIXTURES = (
    Mixture("synthetic only", (SYNTHETIC,), (1,)),
    Mixture("one real speaker only", (SPEAKER,), (1,)),
    Mixture("synthetic + one real speaker", (SYNTHETIC, SPEAKER), (1, 6)),
    Mixture("everything", (SYNTHETIC, SPEAKER, WORDS, SPOKEN), (1, 6, 2, 2)),
    Mixture(
        "everything, after open-domain synthetic speech",
        (SYNTHETIC, SPEAKER, WORDS, SPOKEN),
        (1, 6, 2, 2),
        (f"initialise_from={OPEN_DOMAIN}", "features.frame_ms=64", "optimiser.learning_rate=0.004"),
    ),
)


def main() -> int:
    """Prepare, train each mixture, test, print one table."""
    options = _parser().parse_args()
    _prepare_text()
    _prepare_corpora()
    language, syllables = RUNS / "trigram", RUNS / "syllables"
    _count("ngram_text", language)
    _count("syllables", syllables)
    rows = []
    for mixture in MIXTURES:
        if options.only and mixture.name != options.only:
            continue
        folder, epochs = _train(mixture, options.hours)
        facts = {"mixture": mixture.name, "hours": options.hours, "epochs": epochs}
        rows.append({**facts, "search": "greedy", **_test(folder, language)})
        fused = _test(folder, language, "--syllables", str(syllables))
        rows.append({**facts, "search": "beam and syllable n-gram", **fused})
        write_json(RUNS / "results.json", rows)
    _print(rows)
    return 0


def _count(recipe: str, folder: Path) -> None:
    """Estimate a language model on the open-domain text."""
    run(
        "train.py",
        "language",
        "--config",
        f"configs/language/{recipe}.yaml",
        "--run",
        str(folder),
        f"data.train=[{WORK / 'language.txt'}]",
        f"data.dev=[{WORK / 'synthetic' / 'dev.tsv'}]",
    )


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
            "data.corpora.manifest_lists",
            "prepare",
            str(SHARED / "audio" / folder),
            "--output",
            str(WORK / name),
        )
    # The best epoch is chosen on every twelfth training sentence, never on a test set.
    utterances = read_manifest(WORK / "aishell" / "train.tsv")
    write_manifest(SPEAKER, [u for index, u in enumerate(utterances) if index % 12])
    write_manifest(DEV, utterances[::12])


def _train(mixture: Mixture, hours: float) -> tuple[Path, int]:
    """The run of a mixture and its epochs: as many as ``hours`` of audio make."""
    name = mixture.name.replace(" + ", " and ").replace(",", "").replace(" ", "_")
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
        *mixture.changes,
    )
    return folder, epochs


def _test(folder: Path, language: Path, *search: str) -> dict[str, dict]:
    """Results of each list of test speakers."""
    figures = {}
    for name, manifest in TESTS.items():
        lists = ("--manifest", str(manifest))
        figures[name] = json.loads(
            run("test.py", "pipeline", str(folder), str(language), "--json", *lists, *search)
        )
    return figures


def _print(rows: list[dict]) -> None:
    shown = []
    for row in rows:
        cells = [f"{100 * row[t]['syllable_error_rate']:.1f} / {100 * row[t]['cer']:.1f}" for t in TESTS]
        shown.append((row["mixture"], row["search"], str(row["epochs"]), *cells))
    headings = ("trained on", "search", "epochs", *TESTS)
    print_table("compact on real speech: tonal syllable error / hanzi CER, %", headings, shown, left=2)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hours", type=float, default=20.0, help="hours of audio each training sees")
    parser.add_argument("--only", choices=[mixture.name for mixture in MIXTURES], help="one mixture")
    return parser


if __name__ == "__main__":
    run_command(main)
