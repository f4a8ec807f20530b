"""The one training loop: a task's batches in; weights, checkpoints, history and logs out.

A *task* (speech, language) says what a batch is, what it costs and how it is evaluated. The loop owns
everything else: order of events, resuming, early stopping, logs. It calls a compiled train step rather
than ``Model.fit``: the step is the one place that a distribution strategy or another backend changes.
"""

from __future__ import annotations

import logging
import math
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import keras
import numpy as np
from tqdm import tqdm

from training.checkpoint import TrainingState, load_checkpoint, save_checkpoint
from training.history import HistoryWriter
from training.optimiser import OptimiserConfig, make_optimizer
from training.profiling import StepProfiler, check_profile, parse_window
from training.step import make_deterministic, make_train_step
from utils.config import at_least
from utils.errors import ConfigError, TrainingError
from utils.files import replacing, write_json
from utils.run import RunFolder

log = logging.getLogger("train")

PRECISIONS = ("float32", "mixed_float16", "mixed_bfloat16")


@dataclass(frozen=True)
class TrainingConfig:
    """How long and how to train.

    Attributes:
        epochs: passes over the training data; the learning-rate schedule spans them.
        patience: stop after so many epochs without a better dev error; 0 never stops early.
        checkpoint_steps: steps between checkpoints (one is written after every epoch besides).
        precision: ``float32``, ``mixed_float16`` or ``mixed_bfloat16``.
        xla: compile the train step with XLA (each new batch shape is compiled anew).
        deterministic: bit-for-bit repeatable, at some cost in speed.
        profile: steps to profile for TensorBoard, such as ``120-180`` (counted over all epochs); empty: none.
    """

    epochs: int = 10
    patience: int = 0
    checkpoint_steps: int = 200
    precision: str = "float32"
    xla: bool = False
    deterministic: bool = False
    profile: str = ""

    def __post_init__(self):
        at_least(self, "training", epochs=1, patience=0, checkpoint_steps=1)
        parse_window(self.profile)
        if self.precision not in PRECISIONS:
            hint = f"one of: {', '.join(PRECISIONS)}"
            raise ConfigError(f"unknown training.precision '{self.precision}'", hint=hint)


class Task(Protocol):
    """What the loop needs to know of speech or language training."""

    model: keras.Model
    metric: str  # the key of evaluate() that picks the best epoch: lower is better

    def steps(self, epoch: int) -> int:
        """Number of batches in an epoch."""

    def batches(self, epoch: int, first_step: int) -> Iterator[Any]:
        """An epoch's batches from ``first_step`` (counted from 0) on; each has ``ids``."""

    def arrays(self, batch: Any) -> dict[str, np.ndarray]:
        """A batch as arrays for :meth:`losses`: (batch, …) or (batch, length, …).

        Zeros at the end of both axes are padding, of which a backend may append more: a row of nothing but
        padding has a finite loss, and no influence on the others.
        """

    def losses(self, arrays: dict[str, Any], training: bool) -> Any:
        """Loss of each utterance, (batch,) float32, in ``keras.ops``."""

    def evaluate(self) -> dict[str, float]:
        """Figures on the dev set; holds ``dev_loss`` and ``metric``."""


def prepare_backend(config: TrainingConfig, seed: int) -> None:
    """Set seeds, precision and determinism; call it before a model is built.

    Raises:
        ConfigError: this backend can't do what the config asks.
    """
    check_profile(config.profile)
    keras.utils.set_random_seed(seed)
    keras.mixed_precision.set_global_policy(config.precision)
    if config.deterministic:
        make_deterministic()


def train(task: Task, run: RunFolder, config: TrainingConfig, optimiser: OptimiserConfig) -> dict[str, float]:
    """Train until done, from the run's checkpoint if there is one; returns the best epoch's figures.

    Raises:
        TrainingError: a loss is not finite; the batch's utterances are named.
        KeyboardInterrupt: Ctrl-C or SIGTERM, after a checkpoint was written.
    """
    total_steps = sum(task.steps(epoch) for epoch in range(1, config.epochs + 1))
    optimizer = make_optimizer(optimiser, total_steps)
    optimizer.build(task.model.trainable_variables)
    state = TrainingState()
    if run.checkpoint.is_file():
        state = load_checkpoint(run.checkpoint, task.model, optimizer)
        log.info("resumed at epoch %d, step %d", state.epoch, state.step)
    profiler = StepProfiler(parse_window(config.profile), total_steps, run.logs)
    step = make_train_step(task.model, optimizer, task.losses, xla=config.xla)
    step = profiler.watch(step, done=state.step)
    with HistoryWriter(run, state.history) as history, _clean_stop() as stop, profiler:
        while state.epoch <= config.epochs and not _out_of_patience(state, config):
            _train_epoch(task, run, config, optimizer, step, state, stop, history)
            _finish_epoch(task, run, config, optimizer, state, history)
    best = dict(state.history[state.best_epoch - 1])
    write_json(run.metrics, {"best": best, "last": state.history[-1], "metric": task.metric})
    return best


def _train_epoch(
    task: Task,
    run: RunFolder,
    config: TrainingConfig,
    optimizer: keras.optimizers.Optimizer,
    step: Any,
    state: TrainingState,
    stop: list[int],
    history: HistoryWriter,
) -> None:
    total = task.steps(state.epoch)
    title = f"epoch {state.epoch}/{config.epochs}"
    with tqdm(total=total, initial=state.epoch_step, desc=title, unit="batch", disable=None) as bar:
        for batch in task.batches(state.epoch, state.epoch_step):
            began = time.perf_counter()
            losses = np.asarray(step(task.arrays(batch)))
            _check_finite(losses, batch.ids, state, run)
            state.step += 1
            state.epoch_step += 1
            state.epoch_loss += float(losses.sum(dtype=np.float64))
            state.epoch_utterances += len(losses)
            state.epoch_seconds += time.perf_counter() - began
            history.train_scalar("loss", float(losses.mean()), state.step)
            bar.update()
            bar.set_postfix(loss=f"{state.epoch_loss / state.epoch_utterances:.3f}")
            finished = state.epoch_step == total
            if stop or (state.step % config.checkpoint_steps == 0 and not finished):
                save_checkpoint(run.checkpoint, task.model, optimizer, state)
            if stop:
                log.info(
                    "stopped at epoch %d, step %d; the same command goes on from here",
                    state.epoch,
                    state.step,
                )
                raise KeyboardInterrupt


def _finish_epoch(
    task: Task,
    run: RunFolder,
    config: TrainingConfig,
    optimizer: keras.optimizers.Optimizer,
    state: TrainingState,
    history: HistoryWriter,
) -> None:
    figures = task.evaluate()
    row = {
        "epoch": state.epoch,
        "step": state.step,
        "learning_rate": float(keras.ops.convert_to_numpy(optimizer.learning_rate)),
        "train_loss": state.epoch_loss / max(state.epoch_utterances, 1),
        **figures,
        "seconds": state.epoch_seconds,
    }
    result = [figures[task.metric], figures["dev_loss"]]  # the loss decides between equal error rates
    improved = state.best is None or result < state.best
    if improved:
        state.best, state.best_epoch = result, state.epoch
        _save_weights(task.model, run.best_weights)
    _save_weights(task.model, run.last_weights)
    state.history.append(row)
    state.epoch, state.epoch_step = state.epoch + 1, 0
    state.epoch_loss, state.epoch_utterances, state.epoch_seconds = 0.0, 0, 0.0
    save_checkpoint(run.checkpoint, task.model, optimizer, state)
    history.add(row)
    shown = "  ".join(f"{key} {value:.4f}" for key, value in figures.items())
    log.info(
        "epoch %d/%d  train_loss %.4f  %s  %.1f s%s",
        row["epoch"],
        config.epochs,
        row["train_loss"],
        shown,
        row["seconds"],
        "  (best)" if improved else "",
    )


def _out_of_patience(state: TrainingState, config: TrainingConfig) -> bool:
    return config.patience > 0 and state.epoch - 1 - state.best_epoch >= config.patience


def _check_finite(losses: np.ndarray, ids: Sequence[str], state: TrainingState, run: RunFolder) -> None:
    if np.isfinite(losses).all():
        return
    bad = [name for name, loss in zip(ids, losses, strict=True) if not math.isfinite(loss)]
    log.error("loss not finite at step %d: %s", state.step + 1, " ".join(bad))
    shown = ", ".join(bad[:5]) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")
    raise TrainingError(
        f"the loss is not finite for utterances {shown} at step {state.step + 1}",
        where=run.path,
        hint="look at them and mend them: the same command then goes on from the last checkpoint; or train "
        "anew (another --run) with a lower optimiser.learning_rate or optimiser.clip_norm",
    )


def _save_weights(model: keras.Model, path: Any) -> None:
    with replacing(path) as temporary:
        model.save_weights(temporary)


@contextmanager
def _clean_stop() -> Iterator[list[int]]:
    """Ctrl-C and SIGTERM are noted, and obeyed between two steps; a second one acts at once."""
    noted: list[int] = []

    def note(number: int, frame: Any) -> None:
        if noted:
            raise KeyboardInterrupt
        noted.append(number)

    try:
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread (a notebook's worker, a test): leave signals alone
        before = {}
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
