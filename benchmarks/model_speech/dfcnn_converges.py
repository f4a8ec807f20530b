"""Train the published DFCNN on 100 utterances, decode them, and print the error rate by epoch.

    python -m benchmarks.model_speech.dfcnn_converges [--epochs 45] [manifest.tsv]

If model and loss are correct, the error on these utterances falls below 5 %. This shows nothing about
new speech.
"""

from utils.command.entry import run_command

import argparse
import csv
import subprocess
import sys
from pathlib import Path

from data.manifest import read_manifest, write_manifest
from utils.errors import CorpusError, TrainingError
from utils.run_folder.run import RunFolder
from utils.text_table import print_table

ROOT = Path(__file__).resolve().parents[2]
UTTERANCES = 100
GOAL = 0.05


def main() -> int:
    """Choose 100 utterances, train, print a table; fail above 5 %."""
    options = _parser().parse_args()
    if not options.manifest.is_file():
        raise CorpusError("no such manifest", where=options.manifest, hint="make one with `make demo`")
    run = RunFolder(Path("runs/benchmarks/dfcnn_100"))
    chosen = run.path.parent / "dfcnn_100.tsv"
    # The shortest ones: the point is convergence, and DFCNN costs a CPU core seconds for a second of audio.
    write_manifest(
        chosen, sorted(read_manifest(options.manifest), key=lambda utterance: utterance.seconds)[:UTTERANCES]
    )
    recipe = ["--config", "configs/speech/dfcnn_thchs30.yaml", "--run", str(run.path)]
    data = [f"data.train=[{chosen}]", f"data.dev=[{chosen}]", f"training.epochs={options.epochs}"]
    small = ["data.batch_utterances=5", "training.patience=15"]
    subprocess.run([sys.executable, "train.py", "speech", *recipe, *data, *small], cwd=ROOT, check=True)
    with run.history.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    _print(rows)
    best = min(float(row["dev_syllable_error_rate"]) for row in rows)
    if best >= GOAL:
        raise TrainingError(f"DFCNN stays at {best:.1%} on {UTTERANCES} utterances", where=run.path)
    return 0


def _print(rows: list[dict[str, str]]) -> None:
    shown = [
        (
            row["epoch"],
            f"{float(row['train_loss']):.2f}",
            f"{float(row['dev_syllable_error_rate']):.1%}",
            f"{float(row['seconds']):.1f}",
        )
        for row in [*rows[:-1:5], rows[-1]]
    ]
    headings = ("epoch", "training loss", "syllable error", "seconds")
    print_table(f"DFCNN on {UTTERANCES} utterances", headings, shown, left=0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("manifest", nargs="?", type=Path, default=Path("datasets/demo/train.tsv"))
    parser.add_argument("--epochs", type=int, default=45)
    return parser


if __name__ == "__main__":
    run_command(main)
