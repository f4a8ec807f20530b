"""Common parts of the timings of training steps: a random batch, its loss, a separate process."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.support.commands import ROOT
from utils.errors import TrainingError

PRECISIONS = ("float32", "mixed_bfloat16")
"""Values of `training.precision` that benchmarks compare."""
FRAMES_A_SECOND = 100  # feature frames a second: a hop of 10 ms
_SYLLABLES_A_SECOND = 4


def random_batch(utterances: int, seconds: int, bins: int, classes: int) -> dict[str, np.ndarray]:
    """A batch as a speech task has it: features (utterances, frames, bins) float32, labels, lengths."""
    rng = np.random.default_rng(0)
    frames, syllables = seconds * FRAMES_A_SECOND, seconds * _SYLLABLES_A_SECOND
    return {
        "features": rng.normal(size=(utterances, frames, bins)).astype(np.float32),
        "lengths": np.full(utterances, frames, np.int32),
        "labels": rng.integers(0, classes - 1, (utterances, syllables)).astype(np.int32),
        "label_lengths": np.full(utterances, syllables, np.int32),
    }


def ctc_losses(model: Any, time_stride: int, classes: int) -> Callable[[dict[str, Any], bool], Any]:
    """The training loss of an acoustic model, as `training.backends.step` takes it."""
    # Keras is loaded in the measuring process only.
    from model_speech.ctc.loss import output_lengths
    from training.losses import CtcLoss, pack_ctc_targets

    loss = CtcLoss(classes - 1)

    def losses(batch: dict[str, Any], training: bool) -> Any:
        frames = output_lengths(batch["lengths"], time_stride)
        targets = pack_ctc_targets(batch["labels"], batch["label_lengths"], frames)
        inputs = {"features": batch["features"], "lengths": batch["lengths"]}
        return loss.call(targets, model(inputs, training=training))

    return losses


def measured_alone(module: str, name: str, seconds: float | None = None) -> dict[str, float] | None:
    """Run this command again for one ``name``, in a separate process, and read its figures.

    Returns:
        the JSON of its last line; None if it took longer than ``seconds``.

    Raises:
        TrainingError: it failed.
    """
    command = [sys.executable, "-m", module, *sys.argv[1:], "--only", name]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise TrainingError(f"measuring ended with code {done.returncode}", where=name)
    return json.loads(done.stdout.splitlines()[-1])
