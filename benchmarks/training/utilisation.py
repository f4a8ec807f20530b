"""Measures training steps on the device of the Keras backend, which may be a GPU: speed, utilisation, memory.

    KERAS_BACKEND=jax python -m benchmarks.training.utilisation
    KERAS_BACKEND=torch python -m benchmarks.training.utilisation --model conformer --precision mixed_bfloat16

Four models are trained on random batches, by the optimisers of their recipes: the acoustic models `compact`
and `conformer`, and the language models `transformer` and `gated_cnn`. Each model and precision has a process
of its own, whose batches grow. A step is that of ``train.py``: the batch is copied to the device, the losses
are copied back. Its time is the median of the steps after the first.

- *TFLOP/s*: six floating-point operations for each multiply-accumulate of the forward pass (two, and twice as
  many for the gradient), per second.
- *of peak*: relative to the product of two square matrices in the same precision, measured in the same
  process, as the backend computes it by default.
- *memory*: most memory of the device in use so far, in the process.
- *epoch* and *recipe*: of the recipe for AISHELL-1 (150 h, or 1.73 million syllables; for `gated_cnn`, of the
  recipe of the shipped converter), from the time of the step; without reading, evaluation and early stopping.
"""

from utils.command.entry import run_command

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.support.commands import ROOT
from benchmarks.support.training_step import PRECISIONS, measured_alone
from utils.text_table import print_table

GPU_MATRIX, CPU_MATRIX = 8192, 1024
"""Rows of the matrices for the peak."""
CPU_SHARE = 8
"""On a CPU, only a batch of the smallest size divided by this is measured."""
PRODUCTS = 10
"""Matrix products in a timed call."""


@dataclass(frozen=True)
class Subject:
    """A model that is measured.

    Attributes:
        recipe: file below ``configs``.
        epoch: size of an epoch of the recipe, in seconds of audio or syllables.
        row: length of a row of a batch: a mean utterance of AISHELL-1, or a row of the gated CNN.
        batches: sizes of the measured batches on a GPU, in seconds of audio or syllables.
    """

    recipe: str
    epoch: int
    row: int
    batches: tuple[int, ...]


SPEECH_BATCHES, LANGUAGE_BATCHES = (128, 512, 2048), (4096, 16384, 65536)
SUBJECTS = {
    "compact": Subject("speech/compact_aishell1", 150 * 3600, 4, SPEECH_BATCHES),
    "conformer": Subject("speech/conformer_aishell1", 150 * 3600, 4, SPEECH_BATCHES),
    "transformer": Subject("language/transformer_aishell1", 1_730_000, 14, LANGUAGE_BATCHES),
    "gated_cnn": Subject("language/pinyin_to_hanzi_network", 500 * 4096, 32, LANGUAGE_BATCHES),
}


def main() -> None:
    """Measure each model and precision in a separate process and print the table."""
    options = _parser().parse_args()
    if options.only:
        name, precision = options.only.split(":")
        print(json.dumps(measure(name, precision, options.steps, options.batch)))
        return
    jobs = [
        (name, precision)
        for name in options.model or SUBJECTS
        for precision in options.precision or PRECISIONS
    ]
    measured = {
        job: measured_alone("benchmarks.training.utilisation", ":".join(job))
        for job in tqdm(jobs, disable=None, leave=False)
    }
    if options.json:
        text = json.dumps({":".join(job): figures for job, figures in measured.items()}, indent=1)
        options.json.write_text(text + "\n", encoding="utf-8")
    _print(measured)


def measure(name: str, precision: str, steps: int, sizes: list[int] | None) -> dict[str, Any]:
    """Train a model of :data:`SUBJECTS` on random batches of several sizes.

    Returns:
        Device, backend, weights, peak in TFLOP/s, and ``batches``: a list with the figures of each size. A
        batch that does not fit into the memory has ``error`` instead, and ends the list.
    """
    # Keras is loaded in the measuring process only.
    import keras

    from benchmarks.support.recipe_step import recipe_step
    from utils.backend.devices import backend_gpus

    subject = SUBJECTS[name]
    overrides = [f"training.precision={precision}", "training.xla=false"]
    step = recipe_step(ROOT / "configs" / f"{subject.recipe}.yaml", overrides)
    gpus = backend_gpus()
    peak = matrix_product_rate(precision, GPU_MATRIX if gpus else CPU_MATRIX)
    batches = []
    for size in sizes or (subject.batches if gpus else (subject.batches[0] // CPU_SHARE,)):
        rows = max(1, size // subject.row)
        batch, operations = step.batch(rows, subject.row), 6 * rows * step.multiply_accumulates(subject.row)
        try:
            times = [_seconds(step.run, batch) for _ in range(1 + steps)]
        except Exception as error:  # each backend has its own class
            batches.append({"size": size, "error": f"{type(error).__name__}: {str(error)[:200]}"})
            break
        seconds = float(np.median(times[1:]))
        epoch = seconds * subject.epoch / (rows * subject.row) / 3600
        batches.append(
            {
                "size": rows * subject.row,
                "first_seconds": times[0],
                "seconds": seconds,
                "rate": rows * subject.row / seconds,
                "teraflops": operations / seconds / 1e12,
                "memory_bytes": device_memory(),
                "epoch_hours": epoch,
                "recipe_hours": epoch * step.epochs,
            }
        )
    return {
        "device": gpus[0] if gpus else "CPU",
        "backend": keras.backend.backend(),
        "parameters": step.parameters,
        "peak_teraflops": peak,
        "batches": batches,
    }


def matrix_product_rate(precision: str, rows: int) -> float:
    """TFLOP/s of the product of two square matrices of normal random numbers, the median of ten calls."""
    from keras import ops

    from training.backends.step import compiled

    rng, dtype = np.random.default_rng(0), precision.removeprefix("mixed_")
    # Variance 1 / rows: a product with the matrix leaves the magnitude unchanged.
    left, right = (
        ops.cast(ops.convert_to_tensor(rng.normal(0, rows**-0.5, (rows, rows)).astype(np.float32)), dtype)
        for _ in range(2)
    )

    def products(x: Any, y: Any) -> Any:
        for _ in range(PRODUCTS):
            x = ops.matmul(x, y)
        return ops.cast(ops.max(x), "float32")

    run = compiled(products)
    times = [_seconds(run, left, right) for _ in range(12)][2:]
    return PRODUCTS * 2 * rows**3 / float(np.median(times)) / 1e12


def _seconds(function: Any, *arguments: Any) -> float:
    """Time of a call, until its result is in NumPy."""
    from keras import ops

    start = time.perf_counter()
    ops.convert_to_numpy(function(*arguments))
    return time.perf_counter() - start


def device_memory() -> int:
    """Most bytes of the GPU's memory in use so far in this process; 0 without a GPU."""
    import keras

    from utils.backend.devices import backend_gpus

    if not backend_gpus():
        return 0
    backend = keras.backend.backend()
    if backend == "jax":
        import jax

        return jax.local_devices()[0].memory_stats()["peak_bytes_in_use"]
    if backend == "torch":
        import torch

        return torch.cuda.max_memory_allocated()
    import tensorflow as tf

    return tf.config.experimental.get_memory_info("GPU:0")["peak"]


def _print(measured: dict[tuple[str, str], dict[str, Any]]) -> None:
    any_figures = next(iter(measured.values()))
    title = f"training steps on {any_figures['device']}, Keras on {any_figures['backend']}"
    columns = ("model", "weights", "precision", "batch", "first step", "step", "speed", "TFLOP/s", "of peak")
    rows = [
        (
            name,
            f"{figures['parameters'] / 1e6:.1f} M",
            precision,
            *_cells(batch, figures["peak_teraflops"], unit),
        )
        for (name, precision), figures in measured.items()
        for unit in (("s", "x") if SUBJECTS[name].recipe.startswith("speech") else ("", "/s"),)
        for batch in figures["batches"]
    ]
    print_table(title, (*columns, "memory", "epoch", "recipe"), rows)
    peaks = {precision: figures["peak_teraflops"] for (_, precision), figures in measured.items()}
    print("peak (matrix product):", ", ".join(f"{name} {peak:.1f} TFLOP/s" for name, peak in peaks.items()))


def _cells(batch: dict[str, Any], peak: float, unit: tuple[str, str]) -> list[str]:
    of_size, of_rate = unit
    if "error" in batch:
        return [f"{batch['size']:,} {of_size}", batch["error"].split(":")[0], *[""] * 7]
    return [
        f"{batch['size']:,} {of_size}".strip(),
        f"{batch['first_seconds']:.1f} s",
        f"{1000 * batch['seconds']:.1f} ms",
        f"{batch['rate']:,.0f} {of_rate}",
        f"{batch['teraflops']:.2f}",
        f"{100 * batch['teraflops'] / peak:.1f} %",
        f"{batch['memory_bytes'] / 1e9:.1f} GB" if batch["memory_bytes"] else "–",
        f"{60 * batch['epoch_hours']:.2f} min",
        f"{batch['recipe_hours']:.2f} h",
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", action="append", choices=SUBJECTS, help="only this model; may be repeated")
    parser.add_argument("--precision", action="append", choices=PRECISIONS, help="only this; may be repeated")
    parser.add_argument(
        "--batch", action="append", type=int, metavar="N", help="only this size; may be repeated"
    )
    parser.add_argument("--steps", type=int, default=20, help="steps of each batch (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures to this file")
    parser.add_argument(
        "--only", metavar="MODEL:PRECISION", help="measure this here, print its figures as JSON"
    )
    return parser


if __name__ == "__main__":
    run_command(main)
