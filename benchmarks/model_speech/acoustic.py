"""The open-domain benchmark: tonal syllable error rate of `compact` on unseen voices, trained 20 minutes.

    python -m benchmarks.model_speech.acoustic [--seed 2] [--made 0] [training.precision=mixed_bfloat16]
    python -m benchmarks.model_speech.acoustic --seed 0 --contributions  # effect of each part of the recipe
    python -m benchmarks.model_speech.acoustic --speed                   # what makes a training step faster
    python -m benchmarks.model_speech.acoustic --front training.precision=mixed_bfloat16  # other convolutions

The synthesiser speaks news and dialogue lines of the shared text collection in 80 and more voices (9 h); test
voices and sentences are in no other split. Every third training sentence is spoken by a generated voice
(``data/synthesis/voices.py``); ``--made 0`` omits these. The recipe was tuned on seed 0; other seeds assign
voices and sentences differently. The collection must be beside the checkout. Times are for 2 cores.
"""

from utils.command.entry import run_command

import argparse
import csv
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.support.commands import run
from benchmarks.support.open_text import open_domain_lines, speak_open_domain
from utils.files import write_json, write_text
from utils.run_folder.run import RunFolder
from utils.text_table import print_table

RECIPE = "configs/speech/compact_open.yaml"
SYLLABLES = "configs/language/syllables.yaml"
LANGUAGE_LINES = 400_000
UTTERANCES = {"train": 11_500, "dev": 400, "test": 800}
VOICES = 86
MADE = 500
SHORT_EPOCHS = 2


@dataclass(frozen=True)
class Variant:
    """The recipe with one part changed."""

    name: str
    changes: tuple[str, ...] = ()


VARIANTS = (
    Variant("the recipe"),
    Variant("windows of 50 ms", ("features.frame_ms=50",)),
    Variant("no gates", ("model.gate=0",)),
    Variant("25 ms, no window function", ("features.frame_ms=25", "features.window=rectangular")),
    Variant("no frequency warping", ("spec_augment.frequency_warp=0",)),
    # Batches and masks stay as long, in seconds.
    Variant(
        "a frame every 8 ms", ("features.hop_ms=8", "data.batch_frames=15000", "spec_augment.time_width=25")
    ),
    Variant(
        "a frame every 12.5 ms",
        ("features.hop_ms=12.5", "data.batch_frames=9600", "spec_augment.time_width=16"),
    ),
)
SPEED_VARIANTS = (
    Variant("whole batches, float32", ("training.batch_parts=1",)),
    Variant("two parts, float32: the recipe"),
    Variant("whole batches, bfloat16", ("training.batch_parts=1", "training.precision=mixed_bfloat16")),
    Variant("two parts, bfloat16", ("training.precision=mixed_bfloat16",)),
)


def _front(filters: str, blocks: str, stack: int) -> tuple[str, ...]:
    return (
        f"model.front_filters=[{filters}]",
        f"model.front_blocks=[{blocks}]",
        f"model.frame_stack={stack}",
    )


FRONT_VARIANTS = (
    Variant("16 and 32 filters", _front("16,32", "", 2)),
    Variant("a residual block after the second convolution", _front("16,32", "0,1", 2)),
    Variant("two after the second", _front("16,32", "0,2", 2)),
    Variant("16 and 64 filters, one after the second", _front("16,64", "0,1", 2)),
    Variant("one after each", _front("16,32", "1,1", 2)),
    Variant("16, 32 and 64 filters, one after the second and the third", _front("16,32,64", "0,1,1", 1)),
    Variant("16, 32 and 64 filters, one and two: the recipe"),
)


def main() -> int:
    """Create the corpus, train, test and print the results."""
    options = _parser().parse_args()
    name = f"seed_{options.seed}" if options.made == MADE else f"seed_{options.seed}_made_{options.made}"
    corpus, runs = Path("datasets/open_domain") / name, Path("runs/open_domain") / name
    _make_corpus(corpus, options.seed, options.made)
    if variants := options.variants:
        _print_variants(
            {each.name: _short_training(each, corpus, runs, options.changes) for each in variants}
        )
        return 0
    greedy = _train_and_test(corpus, runs / "compact", options.changes)
    fused = _test_with_syllables(corpus, runs, options.seed)
    _print_result(greedy, fused, runs / "compact")
    return 0


def _make_corpus(corpus: Path, seed: int, made: int) -> None:
    """Synthesise and prepare the corpus, unless it exists."""
    if (corpus / "summary.json").is_file():
        return
    original = corpus / "original"
    speak_open_domain(original, corpus / "spoken.txt", UTTERANCES, VOICES, made, seed)
    run("-m", "data.corpora.synthetic", "prepare", str(original), "--output", str(corpus))


def _train_and_test(corpus: Path, folder: Path, changes: Sequence[str]) -> dict[str, float]:
    splits = [f"data.{split}=[{corpus / split}.tsv]" for split in UTTERANCES]
    run("train.py", "speech", "--config", RECIPE, "--run", str(folder), *splits, *changes)
    return json.loads(run("test.py", "speech", str(folder), "--json"))


def _test_with_syllables(corpus: Path, runs: Path, seed: int) -> dict[str, float]:
    """The same test with a syllable n-gram in the beam, estimated from lines that are not in the corpus."""
    text = corpus / "read.txt"
    spoken = set((corpus / "spoken.txt").read_text(encoding="utf-8").splitlines())
    unspoken = [line for line in open_domain_lines(seed) if line not in spoken]
    write_text(text, "".join(f"{line}\n" for line in unspoken[:LANGUAGE_LINES]))
    counted, data = runs / "syllables", [f"data.train=[{text}]", f"data.dev=[{corpus / 'dev.tsv'}]"]
    run("train.py", "language", "--config", SYLLABLES, "--run", str(counted), *data)
    return json.loads(run("test.py", "speech", str(runs / "compact"), "--syllables", str(counted), "--json"))


def _history(folder: Path) -> list[dict[str, str]]:
    """A row for each epoch of a run."""
    with RunFolder(folder).history.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _print_result(figures: dict[str, float], fused: dict[str, float], folder: Path) -> None:
    rows = _history(folder)
    minutes = sum(float(row["seconds"]) for row in rows) / 60
    summary = {"greedy": figures, "fused": fused, "training_minutes": minutes, "epochs": len(rows)}
    write_json(folder / "open_domain.json", summary)
    print(f"{len(rows)} epochs, {minutes:.1f} minutes of training steps")
    print("tonal syllable error on unseen voices and sentences:")
    for search, results in (("greedy", figures), ("beam with a syllable n-gram", fused)):
        low, high = results["intervals"]["syllable_error_rate"]
        print(f"  {search}: {results['syllable_error_rate']:.1%} (95 %: {low:.1%} to {high:.1%}, by voices)")


def _short_training(
    variant: Variant, corpus: Path, runs: Path, changes: Sequence[str]
) -> list[dict[str, str]]:
    """The history of a short training with the changed recipe; dev and test are one dev set."""
    folder = runs / re.sub(r"\W+", "_", variant.name)
    held_out = f"[{corpus / 'dev.tsv'},{corpus / 'test.tsv'}]"
    data = [f"data.train=[{corpus / 'train.tsv'}]", f"data.dev={held_out}"]
    short = [f"training.epochs={SHORT_EPOCHS}", *changes, *variant.changes]
    run("train.py", "speech", "--config", RECIPE, "--run", str(folder), *data, *short)
    return _history(folder)


def _print_variants(histories: dict[str, list[dict[str, str]]]) -> None:
    epochs = [f"epoch {epoch}" for epoch in range(1, SHORT_EPOCHS + 1)]
    headings, rows = ("variant", *epochs, "steps of the last, s", "speed"), []
    first = float(next(iter(histories.values()))[-1]["seconds"])
    for name, history in histories.items():
        errors = [f"{float(row['dev_syllable_error_rate']):.1%}" for row in history]
        seconds = float(history[-1]["seconds"])  # the first epoch also computes features
        rows.append((name, *errors, f"{seconds:.1f}", f"{first / seconds:.2f}"))
    title = "Tonal syllable error, voices and sentences that are not in the training data"
    print_table(title, headings, rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=2, help="seed of the corpus (default: %(default)s)")
    parser.add_argument("--made", type=int, default=MADE, help="generated voices (default: %(default)s)")
    short = parser.add_mutually_exclusive_group()
    for name, variants, help_text in (
        ("--contributions", VARIANTS, "short trainings of changed recipes"),
        ("--speed", SPEED_VARIANTS, "short trainings in parts and in bfloat16"),
        ("--front", FRONT_VARIANTS, "short trainings with other convolutions in front"),
    ):
        short.add_argument(name, dest="variants", action="store_const", const=variants, help=help_text)
    parser.add_argument("changes", nargs="*", metavar="key=value", help="values that override the recipe's")
    return parser


if __name__ == "__main__":
    run_command(main)
