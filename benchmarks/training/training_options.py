"""What `training.precision` and `training.xla` bring on this machine, for `compact`: one table.

    python -m benchmarks.training.training_options [--utterances 16] [--seconds 4] [--steps 8] [--limit 180]

Each option trains on the same random batches in a process of its own. `first` is the first step of all,
compilation included, `shape 2` the first one on batches of another length: with XLA every new shape is
compiled anew. `step` is the median of the others, beside it how often faster than real time that is, and its
share of float32's. `loss` is the one of the last step: it says whether a lower precision learns the same. An
option that doesn't end within the limit is left out, and named.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from benchmarks.support.training_step import ctc_losses, measured_alone, random_batch
from utils.errors import run_command
from utils.features.speech import FeatureConfig, feature_bins
from utils.vocabulary import acoustic_vocabulary

OPTIONS = {
    "float32": {},
    "bfloat16": {"precision": "mixed_bfloat16"},
    "float16": {"precision": "mixed_float16"},
    "xla": {"xla": True},
    "xla bfloat16": {"xla": True, "precision": "mixed_bfloat16"},
}


def main() -> None:
    """Measure each option in a process of its own and print the table."""
    options = _parser().parse_args()
    if options.only:
        print(json.dumps(measure(options.only, options.utterances, options.seconds, options.steps)))
        return
    deadline = time.monotonic() + options.limit
    rows = {}
    for name in tqdm(OPTIONS, disable=None, leave=False):
        left = deadline - time.monotonic()
        rows[name] = measured_alone("benchmarks.training.training_options", name, left) if left > 0 else None
    _print(rows, options)


def measure(name: str, utterances: int, seconds: int, steps: int) -> dict[str, float]:
    """Train `compact` on random batches of two lengths; seconds of steps, and the last loss."""
    # TensorFlow is loaded in the measuring process only.
    from model_speech.models.compact import CompactConfig, build_compact
    from training.backends.step import make_train_step
    from training.loop import TrainingConfig, prepare_backend
    from training.optimiser import OptimiserConfig, make_optimizer

    training = TrainingConfig(**OPTIONS[name])
    prepare_backend(training, seed=0)
    bins, classes, config = feature_bins(FeatureConfig()), len(acoustic_vocabulary()), CompactConfig()
    model = build_compact(config, bins, classes)
    losses = ctc_losses(model, config.time_stride, classes)
    optimizer = make_optimizer(OptimiserConfig(warmup_fraction=0.0), 2 * steps)
    optimizer.build(model.trainable_variables)
    step = make_train_step(model, optimizer, losses, xla=training.xla)
    first, times, last = [], [], 0.0
    for length in (seconds, seconds + 1):
        batch = random_batch(utterances, length, bins, classes)
        for number in range(steps):
            began = time.perf_counter()
            last = float(np.asarray(step(batch)).mean())
            (times if number else first).append(time.perf_counter() - began)
    audio = utterances * (2 * seconds + 1) / 2  # in the mean batch
    step_seconds = float(np.mean([np.median(times[: steps - 1]), np.median(times[steps - 1 :])]))
    return {
        "first": first[0],
        "second_shape": first[1],
        "step_seconds": step_seconds,
        "real_time": audio / step_seconds,
        "loss": last,
    }


def _print(rows: dict[str, dict[str, float] | None], options: argparse.Namespace) -> None:
    title = f"compact, batches of {options.utterances} x {options.seconds} to {options.seconds + 1} s"
    table = Table(title=title)
    columns = ("option", "first", "shape 2", "step", "speed", "float32", "loss")
    for column in columns:
        table.add_column(column, justify="left" if column == "option" else "right", no_wrap=True)
    usual = (rows["float32"] or {}).get("step_seconds", float("nan"))
    for name, row in rows.items():
        if row is None:
            table.add_row(name, *["-"] * (len(columns) - 1))
            continue
        table.add_row(
            name,
            f"{row['first']:.1f} s",
            f"{row['second_shape']:.1f} s",
            f"{row['step_seconds']:.3f} s",
            f"{row['real_time']:.0f} x",
            f"{row['step_seconds'] / usual:.2f} x",
            f"{row['loss']:.1f}",
        )
    Console().print(table)
    late = [name for name, row in rows.items() if row is None]
    if late:
        print(f"not done within {options.limit} s: {'; '.join(late)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--utterances", type=int, default=16, help="in a batch (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=4, help="of each utterance (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=8, help="of each length (default: %(default)s)")
    parser.add_argument("--limit", type=int, default=180, help="seconds in all (default: %(default)s)")
    parser.add_argument("--only", choices=OPTIONS, help="measure this one here, print its figures as JSON")
    return parser


if __name__ == "__main__":
    run_command(main)
