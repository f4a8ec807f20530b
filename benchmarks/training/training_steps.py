"""Time of the training steps of speech recipes on this machine, and what an epoch of a corpus costs.

    python -m benchmarks.training.training_steps [--utterances 8] [--seconds 4] [--steps 5] [--hours 150]
    python -m benchmarks.training.training_steps configs/speech/compact_aishell1.yaml training.batch_parts=1

No corpus is read: the model of each recipe trains on the same random batch in a separate process, with the
recipe's optimiser and precision. The time of a step (forward, CTC, backward, update) is the median after two
steps of warm-up; core-hours are processor time, which depends less on other load. Features, evaluations and
early stopping are not included.

Columns: weights; seconds per step; speed relative to real time; hours and core-hours of an epoch of
``--hours`` of audio, and hours of all epochs of the recipe.
"""

from utils.command.entry import run_command

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.support.commands import ROOT
from utils.command.parser import CommandParser
from utils.errors import TrainingError
from utils.text_table import print_table
from utils.vocabulary import acoustic_vocabulary

RECIPES = ("configs/speech/compact_thchs30.yaml", "configs/speech/dfcnn_spoken_words.yaml")
COLUMNS = ("recipe", "weights", "step", "speed", "epoch", "core-hours", "recipe's epochs")
WARM_UP_STEPS = 2
SYLLABLES_A_SECOND = 4


def main() -> None:
    """Measure each recipe in a separate process and print the table."""
    options, rows = _parser().parse_args(), []
    if options.only:
        print(json.dumps(measure(options)))
        return
    recipes = [path for path in options.recipes if "=" not in path] or RECIPES
    for recipe in recipes:
        command = [sys.executable, "-m", "benchmarks.training.training_steps", *sys.argv[1:]]
        done = subprocess.run(
            [*command, "--only", recipe], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
        )
        if done.returncode:
            raise TrainingError(f"measuring ended with code {done.returncode}", where=recipe)
        row = json.loads(done.stdout.splitlines()[-1])
        speed = options.utterances * options.seconds / row["step_seconds"]
        rows.append(
            (
                Path(recipe).stem,
                f"{row['parameters'] / 1e6:.2f} M",
                f"{row['step_seconds']:.3f} s",
                f"{speed:.0f} x",
                f"{options.hours / speed:.2f} h",
                f"{options.hours / speed * row['cores']:.1f}",
                f"{row['epochs'] * options.hours / speed:.1f} h",
            )
        )
    title = f"a step of {options.utterances} x {options.seconds} s; an epoch of {options.hours:g} h"
    print_table(title, COLUMNS, rows)


def measure(options: argparse.Namespace) -> dict[str, float]:
    """Train the model of ``options.only`` on a random batch; returns its figures."""
    # Keras is loaded in the measuring process only.
    from model_speech.registry import MODELS
    from training.backends.step import make_train_step
    from training.loop import prepare_backend
    from training.optimiser import layers_of, make_optimizer
    from training.tasks.speech import VARIANTS, SpeechConfig
    from utils.config import load_config
    from utils.features.settings import feature_bins

    overrides = [word for word in options.recipes if "=" in word]
    config = load_config(SpeechConfig, ROOT / options.only, ["task=speech", *overrides], VARIANTS)
    prepare_backend(config.training, config.seed)
    bins, classes = feature_bins(config.features), len(acoustic_vocabulary())
    model = MODELS[config.model.name].build(config.model, bins, classes)
    layers = layers_of(model.trainable_variables)
    optimizer = make_optimizer(config.optimiser, WARM_UP_STEPS + options.steps, layers)
    optimizer.build(model.trainable_variables)
    losses = _ctc_losses(model, config.model.time_stride, classes)
    step = make_train_step(model, optimizer, losses, xla=config.training.xla)
    frames = round(options.seconds / config.features.hop_seconds)
    batch = random_batch(options.utterances, frames, options.seconds * SYLLABLES_A_SECOND, bins, classes)
    times = []
    for _ in range(WARM_UP_STEPS + options.steps):
        start, start_processors = time.perf_counter(), time.process_time()
        np.asarray(step(batch)[0])
        times.append((time.perf_counter() - start, time.process_time() - start_processors))
    seconds, processor_seconds = np.median(times[WARM_UP_STEPS:], axis=0).tolist()
    return {
        "parameters": model.count_params(),
        "step_seconds": seconds,
        "cores": processor_seconds / seconds,
        "epochs": config.training.epochs,
    }


def random_batch(
    utterances: int, frames: int, syllables: int, bins: int, classes: int
) -> dict[str, np.ndarray]:
    """A batch as a speech task has it: features (utterances, frames, bins) float32, labels, lengths."""
    rng = np.random.default_rng(0)
    return {
        "features": rng.normal(size=(utterances, frames, bins)).astype(np.float32),
        "lengths": np.full(utterances, frames, np.int32),
        "labels": rng.integers(0, classes - 1, (utterances, syllables)).astype(np.int32),
        "label_lengths": np.full(utterances, syllables, np.int32),
    }


def _ctc_losses(model, time_stride: int, classes: int):
    """The training loss of an acoustic model, as `training.backends.step` takes it."""
    from model_speech.ctc.loss import ctc_loss, output_lengths

    def losses(batch, training: bool):
        frames = output_lengths(batch["lengths"], time_stride)
        inputs = {"features": batch["features"], "lengths": batch["lengths"]}
        logits = model(inputs, training=training)
        return ctc_loss(batch["labels"], logits, batch["label_lengths"], frames, classes - 1)

    return losses


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument("recipes", nargs="*", default=[], help="recipes, and key=value to change them")
    parser.add_argument("--utterances", type=int, default=8, help="in the batch (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=4, help="of each utterance (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=5, help="timed steps (default: %(default)s)")
    parser.add_argument("--hours", type=float, default=150, help="audio of the corpus (default: AISHELL-1's)")
    parser.add_argument("--only", metavar="RECIPE", help="measure this one here, print its figures as JSON")
    return parser


if __name__ == "__main__":
    run_command(main)
