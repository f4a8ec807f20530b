"""Estimates the duration of the recipes for THCHS-30 and AISHELL-1 on this machine from measured steps.

    python -m benchmarks.training.recipe_costs [--steps 5] [--recipe dfcnn_thchs30 --recipe cbhg_thchs30]

No corpus is read. Each recipe's model trains on random batches of the corpus's mean utterance length, in a
separate process, with the recipe's optimiser and precision; the time of a step is the median after two steps
of warm-up. The hours are the time per second of audio (language models: per syllable) times the size of the
corpus times the epochs; core-hours are the same with processor time, which depends less on other load.
Batches are smaller than the recipe's, so that they fit into memory; computing
features, evaluations and early stopping are not included.
"""

from utils.command.entry import run_command

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from benchmarks.support.commands import ROOT
from benchmarks.support.training_step import measured_alone
from utils.text_table import print_table

WARM_UP_STEPS = 2
AUDIO_SECONDS = 32.0  # speech in a measured batch
SYLLABLES = 1024  # in a measured batch


@dataclass(frozen=True)
class TrainingSplit:
    """Size of a corpus's training split: utterances, hours of audio, syllables."""

    utterances: int
    hours: float
    syllables: int


# Sizes as published with the corpora (openslr.org/18 and /33); syllables: counted in the transcripts.
CORPORA = {
    "thchs30": TrainingSplit(utterances=10_000, hours=25.5, syllables=327_000),
    "aishell1": TrainingSplit(utterances=120_098, hours=150.0, syllables=1_730_000),
}


def main() -> None:
    """Measure each recipe in a separate process and print the table."""
    options = _parser().parse_args()
    if options.only:
        print(json.dumps(measure(Path(options.only), options.steps)))
        return
    recipes = [path for path in sorted((ROOT / "configs").glob("*/*.yaml")) if _corpus(path)]
    chosen = [path for path in recipes if not options.recipe or path.stem in options.recipe]
    rows = {
        path.stem: measured_alone("benchmarks.training.recipe_costs", str(path))
        for path in tqdm(chosen, disable=None, leave=False)
    }
    _print(rows)


def measure(recipe: Path, steps: int) -> dict[str, float]:
    """Train a recipe's model on a random batch.

    Args:
        recipe: path of the recipe.
        steps: number of measured steps, after the warm-up.

    Returns:
        Parameters, seconds of a step, hours of an epoch and of all epochs, core-hours of all epochs.
    """
    # Keras is loaded in the measuring process only.
    from benchmarks.support.recipe_step import recipe_step

    corpus, speech = CORPORA[_corpus(recipe)], recipe.parent.name == "speech"
    size = 3600 * corpus.hours if speech else corpus.syllables
    length = max(1, round(size / corpus.utterances))  # of the mean utterance, in seconds or syllables
    rows = max(1, round((AUDIO_SECONDS if speech else SYLLABLES) / length))
    step = recipe_step(recipe)
    batch, fraction = step.batch(rows, length), rows * length / size
    times = []  # of each step: wall time, and processor time of all cores
    for _ in range(WARM_UP_STEPS + steps):
        start, start_processors = time.perf_counter(), time.process_time()
        np.asarray(step.run(batch))
        times.append((time.perf_counter() - start, time.process_time() - start_processors))
    seconds, processor_seconds = np.median(times[WARM_UP_STEPS:], axis=0).tolist()
    epoch = seconds / fraction / 3600
    return {
        "parameters": step.parameters,
        "step_seconds": seconds,
        "epoch_hours": epoch,
        "epochs": step.epochs,
        "hours": epoch * step.epochs,
        "core_hours": processor_seconds / fraction / 3600 * step.epochs,
    }


def _corpus(recipe: Path) -> str:
    """The corpus in the name of a recipe; empty if it is neither."""
    return next((name for name in CORPORA if recipe.stem.endswith(f"_{name}")), "")


def _print(rows: dict[str, dict[str, float]]) -> None:
    cells = [
        (
            name,
            f"{row['parameters'] / 1e6:.1f} M",
            f"{row['step_seconds']:.2f} s",
            f"{row['epoch_hours']:.1f} h",
            f"{row['epochs']}",
            f"{row['hours']:.0f} h",
            f"{row['core_hours']:.0f}",
        )
        for name, row in rows.items()
    ]
    title = "Recipes for THCHS-30 and AISHELL-1: hours of training steps on this machine"
    print_table(title, ("recipe", "weights", "step", "epoch", "epochs", "total", "core-hours"), cells)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--steps", type=int, default=5, help="number of measured steps (default: %(default)s)"
    )
    parser.add_argument("--recipe", action="append", metavar="NAME", help="only this recipe; may be repeated")
    parser.add_argument("--only", metavar="FILE", help="measure this recipe here, print its figures as JSON")
    return parser


if __name__ == "__main__":
    run_command(main)
