"""Measures `training.precision` and `training.xla` on this machine with the model `compact`.

    python -m benchmarks.training.training_options [--utterances 16] [--seconds 4] [--steps 8] [--limit 180]

Each option trains on the same random batches in a separate process. `first` is the first step with
compilation, `shape 2` the first step on batches of another length: XLA compiles once for each shape. `step`
is the median of the other steps, `speed` their speed relative to real time, `float32` their time relative to
float32. `loss` is that of the last step, to compare precisions. An option that does not finish within the
limit is named.
"""

from utils.command.entry import run_command

import argparse
import json
import time

import numpy as np
from tqdm import tqdm

from benchmarks.support.training_step import ctc_losses, measured_alone, random_batch
from utils.features.speech import FeatureConfig, feature_bins
from utils.text_table import print_table
from utils.vocabulary import acoustic_vocabulary

OPTIONS = {
    "float32": {},
    "bfloat16": {"precision": "mixed_bfloat16"},
    "float16": {"precision": "mixed_float16"},
    "xla": {"xla": True},
    "xla bfloat16": {"xla": True, "precision": "mixed_bfloat16"},
}


def main() -> None:
    """Measure each option in a separate process and print the table."""
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
    """Train `compact` on random batches of two lengths; returns step times and the last loss."""
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
            start = time.perf_counter()
            last = float(np.asarray(step(batch)).mean())
            (times if number else first).append(time.perf_counter() - start)
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
    columns = ("option", "first", "shape 2", "step", "speed", "float32", "loss")
    float32_seconds = (rows["float32"] or {}).get("step_seconds", float("nan"))
    cells = [(name, *_cells(row, float32_seconds)) for name, row in rows.items()]
    print_table(title, columns, cells)
    late = [name for name, row in rows.items() if row is None]
    if late:
        print(f"not done within {options.limit} s: {'; '.join(late)}")


def _cells(row: dict[str, float] | None, float32_seconds: float) -> list[str]:
    if row is None:
        return ["-"] * 6
    return [
        f"{row['first']:.1f} s",
        f"{row['second_shape']:.1f} s",
        f"{row['step_seconds']:.3f} s",
        f"{row['real_time']:.0f} x",
        f"{row['step_seconds'] / float32_seconds:.2f} x",
        f"{row['loss']:.1f}",
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--utterances", type=int, default=16, help="utterances in a batch (default: %(default)s)"
    )
    parser.add_argument(
        "--seconds", type=int, default=4, help="length of each utterance (default: %(default)s)"
    )
    parser.add_argument("--steps", type=int, default=8, help="steps of each length (default: %(default)s)")
    parser.add_argument("--limit", type=int, default=180, help="total seconds (default: %(default)s)")
    parser.add_argument("--only", choices=OPTIONS, help="measure only this option, print its figures as JSON")
    return parser


if __name__ == "__main__":
    run_command(main)
