"""A task with padding and batch normalisation; run as a program it trains over virtual devices.

The arguments are the run folder, the number of devices and, to compile with XLA, that of the epochs.
"""

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import keras
import numpy as np
from keras import layers, ops

from model_speech.layers.masking import FrameMask
from model_speech.layers.normalisation import MaskedBatchNormalization
from training.distributed.distribution import Distribution, distributed
from training.loop import TrainingConfig, train
from training.optimiser import OptimiserConfig
from utils.run_folder.run import start_run

BINS = 3
BATCHES = (7, 6, 4, 3, 1)  # utterances in each batch, so that four devices get unequal and empty shares
TRAINING = TrainingConfig(epochs=11, checkpoint_steps=10)
OPTIMISER = OptimiserConfig(learning_rate=0.05, clip_norm=0.5)


@dataclass
class Frames:
    """Padded sequences of frames with one number for each sequence."""

    ids: list[str]
    features: np.ndarray
    lengths: np.ndarray
    y: np.ndarray


class SpreadTask:
    """Learn the mean over time of a frame's first bin."""

    metric = "dev_loss"
    accepts_padding = True

    def __init__(self, distribution: Distribution):
        keras.utils.set_random_seed(1)
        self.model = distribution.build(build_model)

    def steps(self, epoch):
        return len(BATCHES)

    def batches(self, epoch, first_step):
        rng = np.random.default_rng(epoch)
        for number, size in enumerate(BATCHES):
            batch = _draw(rng, size, f"e{epoch}b{number}")
            if number >= first_step:
                yield batch

    def arrays(self, batch):
        return {"features": batch.features, "lengths": batch.lengths, "y": batch.y}

    def losses(self, arrays, training):
        inputs = {"features": arrays["features"], "lengths": arrays["lengths"]}
        return ops.square(self.model(inputs, training=training)[:, 0] - arrays["y"])

    def evaluate(self):
        batch = _draw(np.random.default_rng(0), 9, "dev")
        predicted = self.model.predict_on_batch({"features": batch.features, "lengths": batch.lengths})
        return {"dev_loss": float(np.mean((predicted[:, 0] - batch.y) ** 2))}


def build_model() -> keras.Model:
    """(B, T, BINS), (B,) → (B, 1); 49 numbers in all."""
    features = keras.Input((None, BINS), name="features")
    lengths = keras.Input((), dtype="int32", name="lengths")
    valid = FrameMask(1)(features, lengths)
    x = MaskedBatchNormalization(momentum=0.9)(layers.Dense(4, use_bias=False)(features), valid)
    x = MaskedBatchNormalization(momentum=0.9)(layers.ReLU()(x), valid)
    frames = ops.maximum(ops.cast(lengths, "float32"), 1.0)
    return keras.Model(
        {"features": features, "lengths": lengths}, layers.Dense(1)(ops.sum(x, axis=1) / frames[:, None])
    )


def train_over(
    distribution: Distribution, run: Path, epochs: int = TRAINING.epochs, xla: bool = False
) -> None:
    """Train into a new run folder."""
    training = replace(TRAINING, epochs=epochs, xla=xla)
    train(SpreadTask(distribution), start_run(run, {"task": "speech"}), training, OPTIMISER, distribution)


def _draw(rng: np.random.Generator, size: int, name: str) -> Frames:
    lengths = rng.integers(2, 9, size).astype(np.int32)
    features = rng.standard_normal((size, lengths.max(), BINS)).astype(np.float32) + 1
    y = np.zeros(size, np.float32)
    for row, length in enumerate(lengths):
        y[row] = features[row, :length, 0].mean()
        features[row, length:] = 100.0  # the content of the padding must have no effect
    return Frames([f"{name}u{row}" for row in range(size)], features, lengths, y)


def _seeds_of_replicas(distribution: Distribution) -> list[int]:
    """The first number of the state of a dropout layer's generator, on each device."""
    inputs = keras.Input((2,))
    model = distribution.build(lambda: keras.Model(inputs, layers.Dropout(0.5)(inputs)))
    distribution.vary_dropout(model)
    (state,) = model.variables
    return [int(copy.numpy()[0]) for copy in distribution.strategy.experimental_local_results(state.value)]


if __name__ == "__main__":
    run_path, devices, *with_xla = sys.argv[1:]
    with distributed("mirrored", int(devices)) as found:
        train_over(found, Path(run_path), *map(int, with_xla), xla=bool(with_xla))
        if not with_xla:
            print(*_seeds_of_replicas(found))
