"""Checks the machine (devices, memory, XLA), and estimates the duration of a training from measured steps.

The training steps use random features with the sizes of the recipe's batches, so only the manifests are
needed, for the lengths.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import keras
import numpy as np
import psutil
from keras import ops

from data.batches.batching import FRAME_MULTIPLE, Batch, BatchSize, make_batch, plan_batches
from model_speech.ctc.loss import output_lengths
from model_speech.registry import MODELS
from preflight.findings import ERROR, WARNING, Finding, apply
from preflight.listings import Line, Listing, of_role
from training.backends.batch_parts import in_parts
from training.backends.step import make_train_step
from training.distillation import Teacher
from training.failures import memory_errors_explained
from training.loop import prepare_backend
from training.optimiser import layers_of, make_optimizer
from training.tasks.speech import SpeechConfig, SpeechTask
from utils.backend.devices import (
    backend_gpus,
    describe_devices,
    multiplies_bfloat16,
    no_gpu_messages,
    unused_gpu_reason,
)
from utils.backend.nvidia import nvidia_gpus
from utils.backend.prediction import predict
from utils.errors import TrainingError, require
from utils.features.speech import feature_bins
from utils.vocabulary import Vocabulary, acoustic_vocabulary

_QUANTILES = (0.1, 0.5, 0.9)  # of the batches ordered by size: those to measure
_REPETITIONS = 2  # of each batch, after a first call that compiles
_GIB = 2**30
_BFLOAT16_HINT = ", multiplies bfloat16: training.precision=mixed_bfloat16 makes compact models faster"


@dataclass(frozen=True)
class Machine:
    """The state of the machine.

    Attributes:
        properties: name → value, in the order to print them.
        unused_gpu: why a GPU of the machine is not used; ``""`` if there is none.
        xla_error: why the test of XLA failed; ``""`` if it passed or the backend does not use XLA.
        step_error: why a training step of the recipe failed; ``""`` if it passed or there is no recipe.
        needs_xla: whether the recipe uses XLA.
    """

    properties: dict[str, str]
    unused_gpu: str = ""
    xla_error: str = ""
    step_error: str = ""
    needs_xla: bool = False

    def findings(self) -> list[Finding]:
        """The findings on the machine."""
        return apply(MACHINE, self, "this machine")


@dataclass(frozen=True)
class Forecast:
    """The estimated duration of a training run on this machine.

    Attributes:
        steps: optimiser steps in an epoch.
        epochs: epochs of the recipe, without early stopping.
        step_seconds: mean time of a step.
        evaluation_seconds: time of the dev set, once in an epoch.
    """

    steps: int
    epochs: int
    step_seconds: float
    evaluation_seconds: float

    @property
    def hours(self) -> float:
        """Duration of the training, without computing the features."""
        return self.epochs * (self.steps * self.step_seconds + self.evaluation_seconds) / 3600


def unused_gpu(machine: Machine, where: str) -> Iterator[Finding]:
    """With --machine: an NVIDIA GPU that the backend does not use."""
    if machine.unused_gpu:
        yield Finding(
            WARNING,
            where,
            "",
            problem="a GPU is not used",
            advice="install driver and CUDA libraries that fit the build "
            "(pip install 'tensorflow[and-cuda]')",
            detail=machine.unused_gpu,
        )


def xla_fails(machine: Machine, where: str) -> Iterator[Finding]:
    """With --machine: XLA cannot compile."""
    if machine.xla_error:
        yield Finding(
            ERROR if machine.needs_xla else WARNING,
            where,
            "",
            problem="XLA fails",
            advice="set training.xla=false",
            detail=machine.xla_error,
        )


def step_fails(machine: Machine, where: str) -> Iterator[Finding]:
    """With --machine and --config: a training step of the recipe fails, for example out of memory."""
    if machine.step_error:
        yield Finding(
            ERROR,
            where,
            "",
            problem="a training step fails",
            advice="lower data.batch_frames if memory has run out",
            detail=machine.step_error,
        )


MACHINE = (unused_gpu, xla_fails, step_fails)


def examine_machine(config: SpeechConfig | None, listings: Sequence[Listing]) -> Machine:
    """Examine the machine; with a recipe and its manifests, also measure training steps.

    Args:
        config: a recipe of an acoustic model, or None.
        listings: its manifests, each with its role.

    Raises:
        ConfigError: the recipe has no training utterance.
    """
    properties = _computer_properties()
    properties["XLA"], xla_error = _try_xla()
    step_error = ""
    if config:
        try:
            with memory_errors_explained("speech", config):
                result = forecast(config, listings)
            properties |= _forecast_properties(result)
        except TrainingError as error:
            step_error = str(error)
    needs_xla = bool(config and config.training.xla)
    return Machine(properties, unused_gpu_reason(), xla_error, step_error, needs_xla)


def forecast(config: SpeechConfig, listings: Sequence[Listing]) -> Forecast:
    """Measure training steps and evaluation of a recipe on random features.

    Raises:
        ConfigError: the recipe has no training utterance, or its teacher does not fit.
        RunError: its teacher is not a whole speech run.
    """
    prepare_backend(config.training, config.seed)
    train = _lines(config, of_role(listings, "train"))[: config.data.limit or None]
    dev = _lines(config, of_role(listings, "dev"))
    require(train, "no training utterance to forecast from", hint="see data.train of the recipe")
    vocabulary = acoustic_vocabulary({syllable for line, _ in train for syllable in line.pinyin})
    bins = feature_bins(config.features)
    model = MODELS[config.model.name].build(config.model, bins, len(vocabulary))
    optimizer = make_optimizer(config.optimiser, 1000, layers_of(model.trainable_variables))
    optimizer.build(model.trainable_variables)
    teacher = Teacher.load(config.distillation, config.model, vocabulary)
    # Without batch sources: only its losses are used.
    task = SpeechTask(
        model,
        vocabulary,
        config.model.time_stride,
        None,
        None,
        consistency=config.spec_augment.consistency,
        teacher=teacher,
    )
    losses = in_parts(task.losses, config.training.batch_parts)
    step = make_train_step(model, optimizer, losses, config.training.xla)
    maker = _BatchMaker(config, vocabulary, teacher)
    plan = maker.plan(train, shuffle=True)
    per_frame = _seconds_per_frame(maker, train, plan, lambda batch: np.asarray(step(task.arrays(batch))))
    passes = _passes(config, listings)
    evaluation = 0.0
    if dev:
        dev_plan = maker.plan(dev, shuffle=False)
        dev_per_frame = _seconds_per_frame(maker, dev, dev_plan, lambda batch: _predict(model, batch))
        evaluation = dev_per_frame * sum(maker.size(dev, indices) for indices in dev_plan)
    seconds = per_frame * sum(maker.size(train, indices) for indices in plan)
    return Forecast(
        steps=max(1, round(len(plan) * passes)),
        epochs=config.training.epochs,
        step_seconds=seconds / len(plan),
        evaluation_seconds=evaluation,
    )


def _lines(config: SpeechConfig, listings: Sequence[Listing]) -> list[tuple[Line, int]]:
    """Utterances with a valid length, each with its number of feature frames."""
    lines = [line for listing in listings for line in listing.lines if line.has_length]
    return [(line, line.frames(config.features)) for line in lines]


def _passes(config: SpeechConfig, listings: Sequence[Listing]) -> float:
    """Mean number of passes over the training utterances in an epoch, from ``data.weights``."""
    sizes = [len(listing.lines) for listing in of_role(listings, "train")]
    weights = config.data.weights
    if len(weights) != len(sizes) or not sum(sizes):
        return 1.0
    return sum(weight * size for weight, size in zip(weights, sizes, strict=True)) / sum(sizes)


class _BatchMaker:
    """Batches of random features as large as a recipe's, with second views and the teacher's features."""

    def __init__(self, config: SpeechConfig, vocabulary: Vocabulary, teacher: Teacher | None):
        self._config, self._classes = config, len(vocabulary)
        self._teacher_bins = feature_bins(teacher.features) if teacher else 0
        self._random = np.random.default_rng(config.seed)

    def plan(self, lines: Sequence[tuple[Line, int]], shuffle: bool) -> list[np.ndarray]:
        """The batches of an epoch: arrays of indices into ``lines``."""
        data = self._config.data
        return plan_batches(
            np.array([frames for _, frames in lines]),
            batch_frames=data.batch_frames,
            max_batch=data.batch_utterances,
            seed=self._config.seed,
            epoch=1,
            shuffle=shuffle,
        )

    def size(self, lines: Sequence[tuple[Line, int]], indices: np.ndarray) -> int:
        """Number of frames in a batch, with padding."""
        longest = max(lines[index][1] for index in indices)
        return len(indices) * -(-longest // FRAME_MULTIPLE) * FRAME_MULTIPLE

    def batch(self, lines: Sequence[tuple[Line, int]], indices: np.ndarray) -> Batch:
        """Random features and labels; the labels fit into the model's output frames."""
        chosen = [lines[index] for index in indices]
        bins, stride = feature_bins(self._config.features), self._config.model.time_stride
        limits = [int(output_lengths(frames, stride)) // 2 for _, frames in chosen]
        lengths = [frames for _, frames in chosen]
        labels = [
            self._random.integers(0, self._classes - 1, max(1, min(len(line.pinyin), limit)))
            for (line, _), limit in zip(chosen, limits, strict=True)
        ]
        return make_batch(
            [line.id for line, _ in chosen],
            self._features(lengths, bins),
            labels,
            size=BatchSize(max(lengths), bins, max(map(len, labels)), self._teacher_bins),
            second_view=self._features(lengths, bins) if self._config.spec_augment.consistency else None,
            teacher_features=self._features(lengths, self._teacher_bins) if self._teacher_bins else None,
        )

    def _features(self, lengths: Sequence[int], bins: int) -> list[np.ndarray]:
        return [self._random.standard_normal((frames, bins), np.float32) for frames in lengths]


def _seconds_per_frame(
    maker: _BatchMaker,
    lines: Sequence[tuple[Line, int]],
    plan: Sequence[np.ndarray],
    run: Callable[[Batch], object],
) -> float:
    """Time per padded frame, measured on small, medium and large batches, without the first calls."""
    ordered = sorted(plan, key=lambda indices: maker.size(lines, indices))
    measured = [ordered[round(quantile * (len(ordered) - 1))] for quantile in _QUANTILES]
    seconds, frames = 0.0, 0
    for indices in measured:
        batch = maker.batch(lines, indices)
        run(batch)
        start = time.perf_counter()
        for _ in range(_REPETITIONS):
            run(batch)
        seconds += time.perf_counter() - start
        frames += _REPETITIONS * maker.size(lines, indices)
    return seconds / frames


def _predict(model: keras.Model, batch: Batch) -> object:
    return predict(model, {"features": batch.features, "lengths": batch.feature_lengths})


def _computer_properties() -> dict[str, str]:
    devices, memory = describe_devices(), psutil.virtual_memory()
    gpus = "; ".join(map(str, nvidia_gpus())) or "none found"
    reasons = {} if backend_gpus() else {"why no GPU": "; ".join(no_gpu_messages()) or "no message"}
    return {
        "backend": f"{keras.backend.backend()}, Keras {keras.version()}, CUDA build: {devices['cuda_build']}",
        "computes on": ", ".join(devices["devices"]),
        **reasons,
        "NVIDIA GPUs": gpus,
        "memory": f"{memory.available / _GIB:.1f} of {memory.total / _GIB:.1f} GiB free",
        "processor": f"{os.cpu_count()} cores{_BFLOAT16_HINT if multiplies_bfloat16() else ''}",
        "disk": f"{shutil.disk_usage(Path.cwd()).free / _GIB:.0f} GiB free in {Path.cwd()}",
    }


def _try_xla() -> tuple[str, str]:
    """Compile a small function with XLA: the result, and the error if it failed."""
    if keras.backend.backend() == "torch":
        return "not used by PyTorch", ""
    try:
        start = time.perf_counter()
        _compile_with_xla()
    except Exception as error:  # backends raise any kind
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        return f"fails: {reason}", reason
    return f"works, {time.perf_counter() - start:.1f} s for a small function", ""


def _compile_with_xla() -> None:
    values = np.ones((4, 4), np.float32)
    if keras.backend.backend() == "jax":
        import jax

        jax.jit(lambda x: ops.softmax(ops.matmul(x, x)))(values).block_until_ready()
    else:
        import tensorflow as tf

        tf.function(lambda x: ops.softmax(ops.matmul(x, x)), jit_compile=True)(tf.constant(values)).numpy()


def _forecast_properties(result: Forecast) -> dict[str, str]:
    evaluation = f", {result.evaluation_seconds:.0f} s of evaluation in each"
    return {
        "training step": f"{result.step_seconds:.3g} s on average",
        "forecast": (
            f"{result.hours:.2g} hours: {result.epochs} epochs of {result.steps:,} steps{evaluation}; "
            "without computing features, without early stopping"
        ),
    }
