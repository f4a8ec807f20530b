"""What `training.precision` and `training.xla` bring on this machine, for `compact`: one table.

    python -m benchmarks.training_options [--utterances 16] [--seconds 4] [--steps 8] [--limit 180]

Each option trains on the same random batches in a process of its own. `first` is the first step of all,
compilation included, `shape 2` the first one on batches of another length: with XLA every new shape is
compiled anew. `step` is the median of the others, beside it how often faster than real time that is, and its
share of float32's. `loss` is the one of the last step: it says whether a lower precision learns the same. An
option that doesn't end within the limit is left out, and named.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from utils.errors import TrainingError, run_command
from utils.features import FeatureConfig, feature_bins
from utils.vocabulary import acoustic_vocabulary

ROOT = Path(__file__).resolve().parent.parent
OPTIONS = {
    "float32": {},
    "bfloat16": {"precision": "mixed_bfloat16"},
    "float16": {"precision": "mixed_float16"},
    "xla": {"xla": True},
    "xla bfloat16": {"xla": True, "precision": "mixed_bfloat16"},
}
FRAMES_A_SECOND = 100  # of the features: a hop of 10 ms
SYLLABLES_A_SECOND = 4


def main() -> None:
    """Measure each option in a process of its own and print the table."""
    options = _parser().parse_args()
    if options.only:
        print(json.dumps(measure(options.only, options.utterances, options.seconds, options.steps)))
        return
    deadline = time.monotonic() + options.limit
    rows = {name: _in_own_process(name, deadline) for name in tqdm(OPTIONS, disable=None, leave=False)}
    _print(rows, options)


def measure(name: str, utterances: int, seconds: int, steps: int) -> dict[str, float]:
    """Train `compact` on random batches of two lengths; seconds of steps, and the last loss."""
    # TensorFlow is loaded in the measuring process only.
    from model_speech.compact import CompactConfig, build_compact
    from model_speech.ctc import output_lengths
    from training.loop import TrainingConfig, prepare_backend
    from training.losses import CtcLoss, pack_ctc_targets
    from training.optimiser import OptimiserConfig, make_optimizer
    from training.step import make_train_step

    training = TrainingConfig(**OPTIONS[name])
    prepare_backend(training, seed=0)
    bins, classes, config = feature_bins(FeatureConfig()), len(acoustic_vocabulary()), CompactConfig()
    model, loss = build_compact(config, bins, classes), CtcLoss(classes - 1)

    def losses(batch, training):
        frames = output_lengths(batch["lengths"], config.time_stride)
        targets = pack_ctc_targets(batch["labels"], batch["label_lengths"], frames)
        inputs = {"features": batch["features"], "lengths": batch["lengths"]}
        return loss.call(targets, model(inputs, training=training))

    optimizer = make_optimizer(OptimiserConfig(warmup_fraction=0.0), 2 * steps)
    optimizer.build(model.trainable_variables)
    step = make_train_step(model, optimizer, losses, xla=training.xla)
    first, times, last = [], [], 0.0
    for length in (seconds, seconds + 1):
        batch = _random_batch(utterances, length, bins, classes)
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


def _random_batch(utterances: int, seconds: int, bins: int, classes: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    frames, syllables = seconds * FRAMES_A_SECOND, seconds * SYLLABLES_A_SECOND
    return {
        "features": rng.normal(size=(utterances, frames, bins)).astype(np.float32),
        "lengths": np.full(utterances, frames, np.int32),
        "labels": rng.integers(0, classes - 1, (utterances, syllables)).astype(np.int32),
        "label_lengths": np.full(utterances, syllables, np.int32),
    }


def _in_own_process(name: str, deadline: float) -> dict[str, float] | None:
    command = [sys.executable, __file__, *sys.argv[1:], "--only", name]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    left = deadline - time.monotonic()
    if left <= 0:
        return None
    try:
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=False, timeout=left
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise TrainingError(f"measuring ended with code {done.returncode}", where=name)
    return json.loads(done.stdout.splitlines()[-1])


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
