"""The one training loop: trains a task epoch by epoch; writes weights, checkpoints, history and logs.

A *task* (speech, language, keyword) defines batches, loss and evaluation. The loop does the rest: order of
events, resuming, early stopping, logs. It calls a compiled training step instead of ``Model.fit``, so that
distribution strategies and backends change the step only. With several processes, each runs this loop on its
shard of every batch.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Protocol

import keras
import numpy as np
from tqdm import tqdm

from training.backends.step import check_xla, in_parts, make_deterministic
from training.checkpoint import (
    TrainingState,
    keep_weights,
    load_checkpoint,
    save_checkpoint,
)
from training.distributed.distribution import SINGLE_PROCESS, Distribution, TrainStep
from training.failures import check_losses, check_values, largest_weight
from training.history import Example, HistoryWriter, record_devices
from training.initialise import InitialWeights, moving_statistics
from training.optimiser import (
    OptimiserConfig,
    averaged_weights,
    layers_of,
    lower_rate_on_plateau,
    make_optimizer,
)
from training.profiling import StepProfiler, parse_window
from utils.backend.devices import grow_gpu_memory, share_cores
from utils.backend.weights import save_weights
from utils.files import write_json
from utils.limits import Count, Fraction, Limited, Size, between, check_choice
from utils.run_folder.run import RunFolder
from utils.stop_signals import Stopped, note_stop_signals, signal_name

log = logging.getLogger("train")

PRECISIONS = ("float32", "mixed_float16", "mixed_bfloat16")


@dataclass(frozen=True)
class TrainingConfig(Limited, section="training"):
    """How long and how to train.

    Attributes:
        epochs: passes over the training data; the learning-rate schedule spans them.
        evaluate_first: evaluate the initial weights too, as epoch 0: they are kept as the best weights if no
            epoch has a lower dev error. For a training run that begins with the weights of another run.
        initial_fraction: weight of the initial weights in the mean of initial and trained weights that is
            evaluated and saved (Wortsman et al., 2022); 0: only the trained ones. Against forgetting.
        evaluation_steps: steps between evaluations within an epoch, beside the one at its end; 0: none. Each
            evaluation is a row of ``history.csv`` and may have the best weights.
        patience: stop after this number of epochs without a better dev error; 0: never.
        checkpoint_steps: steps between checkpoints; another one is written after every epoch.
        kept_weights: number of last evaluations whose weights stay in ``weights/`` of the run folder, with
            those of the best one; 0: only ``best`` and ``last`` are kept.
        precision: ``float32``, ``mixed_float16`` or ``mixed_bfloat16``.
        batch_parts: parts of a batch that TensorFlow computes on a CPU at the same time, each on its share of
            the cores; batch normalisation has the statistics of a part.
        xla: compile the training step with XLA (once for each batch shape).
        deterministic: bit-for-bit repeatable, but slower.
        profile: steps to profile for TensorBoard, such as ``120-180`` (counted over all epochs); empty: none.
        log_weights: write the model's graph and, at each evaluation, the histograms of its weights for
            TensorBoard.
    """

    epochs: Annotated[int, between(1, 100_000)] = 10
    evaluate_first: bool = False
    evaluation_steps: Size = 0
    initial_fraction: Fraction = 0.0
    patience: Size = 0
    checkpoint_steps: Count = 200
    kept_weights: Size = 0
    precision: str = "float32"
    batch_parts: Count = 1
    xla: bool = False
    deterministic: bool = False
    profile: str = ""
    log_weights: bool = False

    def __post_init__(self):
        super().__post_init__()
        parse_window(self.profile)
        check_choice(self, "training", precision=PRECISIONS)


class Task(Protocol):
    """The interface between the loop and speech, language or keyword training."""

    model: keras.Model
    metric: str  # key in evaluate() that selects the best epoch: lower is better
    accepts_padding: bool  # whether a step may append zeros to a batch; if not, all batches have one shape

    def steps(self, epoch: int) -> int:
        """Number of batches in an epoch; of a packed corpus about that, for schedules and progress."""

    def batches(self, epoch: int, first_step: int) -> Iterator[Any]:
        """Batches of an epoch, from ``first_step`` (counted from 0) on; each has the ``ids`` of all rows."""

    def arrays(self, batch: Any) -> dict[str, np.ndarray]:
        """A batch, or this process's shard of it, for :meth:`losses`: (batch, …) or (batch, length, …).

        Where ``accepts_padding``, zeros at the end of both axes are padding, and a step may append more. A
        row of padding must have a finite loss and no influence on other rows.
        """

    def losses(self, arrays: dict[str, Any], training: bool) -> Any:
        """Loss of each utterance, (batch,) float32, in ``keras.ops``."""

    def evaluate(self) -> dict[str, float]:
        """Figures on the dev set, with the keys ``dev_loss`` and ``metric``; others may be added."""


def prepare_backend(config: TrainingConfig, seed: int) -> None:
    """Set seeds, precision and determinism; call this before a model is built.

    Raises:
        ConfigError: the backend does not support a setting.
    """
    check_xla(config.xla)
    if keras.backend.backend() == "tensorflow":
        grow_gpu_memory()
    share_cores(config.batch_parts)
    keras.utils.set_random_seed(seed)
    keras.mixed_precision.set_global_policy(config.precision)
    if config.deterministic:
        make_deterministic()


def train(
    task: Task,
    run: RunFolder,
    config: TrainingConfig,
    optimiser: OptimiserConfig,
    distribution: Distribution = SINGLE_PROCESS,
    test: Callable[[], dict[str, float]] | None = None,
    export: Callable[[], None] | None = None,
    examples: Callable[[], Sequence[Example]] = tuple,
) -> dict[str, float]:
    """Train to the end, from the run's checkpoint if there is one; return the best evaluation's metrics.

    Args:
        task: its model comes from ``distribution.build``; its arrays hold ``distribution.shard`` of a batch.
        run: run folder of the chief, or a temporary one in another process.
        config: duration and precision.
        optimiser: settings of the optimiser.
        distribution: devices and processes.
        test: computes metrics of a test set; called once with the last weights, for ``metrics.json``.
        export: writes further files of the finished run from its best weights; called in the chief before
            ``metrics.json``, which says that the run is finished.
        examples: some hypotheses of the last evaluation, for the log and TensorBoard.

    Raises:
        TrainingError: a loss, a weight or a dev figure is not finite; for losses the error names the
            utterances that caused it. Such weights replace neither the checkpoint nor saved weights.
        Stopped: by Ctrl-C or SIGTERM in one of the processes, after a checkpoint was written.
    """
    total_steps = sum(task.steps(epoch) for epoch in range(1, config.epochs + 1))
    profiler = StepProfiler(parse_window(config.profile), total_steps, run.logs)
    optimizer = make_optimizer(optimiser, total_steps, layers_of(task.model.trainable_variables))
    variables = distribution.optimised(task.model)
    optimizer.build(variables)
    statistics = distribution.first_copies(moving_statistics(task.model))
    initial = InitialWeights(run, [*variables, *statistics], config.initial_fraction)
    job = _Job(task, run, config, optimiser, optimizer, distribution, initial, examples)
    state = _begin(job)
    record_devices(run)
    distribution.vary_dropout(task.model)
    with (
        HistoryWriter(run, state.history) as history,
        note_stop_signals() as received,
        profiler,
    ):
        losses = in_parts(task.losses, config.batch_parts)
        step, stop = distribution.make_step(
            task.model, optimizer, losses, config.xla, task.accepts_padding, received
        )
        step = profiler.watch(step, done=state.step)
        if config.log_weights:
            history.graph(task.model)
        while state.epoch <= config.epochs and not _out_of_patience(state, config):
            _train_epoch(job, step, state, stop, history)
            _add_evaluation(job, state, history, ends_epoch=True)
    _finish_run(job, state, test, export)
    return state.best_metrics()


@dataclass(frozen=True)
class _Job:
    """The constant parts of a training run."""

    task: Task
    run: RunFolder
    config: TrainingConfig
    optimiser: OptimiserConfig
    optimizer: keras.optimizers.Optimizer
    distribution: Distribution
    initial: InitialWeights
    examples: Callable[[], Sequence[Example]]

    @contextmanager
    def evaluated_weights(self) -> Iterator[None]:
        """Inside the block, the model has the weights that are evaluated and saved."""
        variables = self.distribution.optimised(self.task.model)
        with averaged_weights(self.optimizer, variables), self.initial.mixed_in():
            yield


def _begin(job: _Job) -> TrainingState:
    """The state of the run's checkpoint; in a new run, write the first checkpoint."""
    if not job.run.checkpoint.is_file():
        state = TrainingState()
        if job.config.evaluate_first:
            _evaluate_first(job, state)
        _save_checkpoint(job, state)
        return state
    state = load_checkpoint(job.run.checkpoint, job.task.model, job.optimizer)
    log.info("resumed at epoch %d, step %d", state.epoch, state.step)
    return state


def _evaluate_first(job: _Job, state: TrainingState) -> None:
    """Evaluate and save the initial weights as those of epoch 0."""
    metrics = _evaluate(job, state)
    state.initial = {"epoch": 0, "step": 0, **metrics}
    state.best = [metrics[job.task.metric], metrics["dev_loss"]]
    _save_weights(job, job.run.best_weights)
    log.info("before the training  %s", _shown(metrics))


def _report_change(state: TrainingState, metric: str) -> None:
    """Log the dev metric before and after the training, and which weights are kept."""
    before, best = state.initial[metric], state.best_metrics()
    if state.best_epoch:
        log.info("%s: %.4f before → %.4f after (epoch %d)", metric, before, best[metric], state.best_epoch)
    else:
        log.info("%s: %.4f before, and no epoch is better: the initial weights are kept", metric, before)


def _train_epoch(
    job: _Job,
    step: TrainStep,
    state: TrainingState,
    stop: list[int],
    history: HistoryWriter,
) -> None:
    task, config = job.task, job.config
    total = task.steps(state.epoch)
    title = f"epoch {state.epoch}/{config.epochs}"
    with tqdm(total=total, initial=state.epoch_step, desc=title, unit="batch", disable=None) as bar:
        for number, batch in enumerate(task.batches(state.epoch, state.epoch_step)):
            if number == 0:  # depends on seed, epoch and the lengths of all utterances
                job.distribution.check_same("first batch", batch.ids)
            began = time.perf_counter()
            arrays = task.arrays(batch)
            losses, figures = step(arrays, len(batch.ids))
            check_losses(losses, batch.ids, state.step + 1, job.run.path)
            state.step += 1
            state.epoch_step += 1
            seconds = time.perf_counter() - began
            state.loss += float(losses.sum(dtype=np.float64))
            state.utterances += len(losses)
            state.seconds += seconds
            speed = len(losses) / seconds
            history.train_step(
                {"loss": float(losses.mean()), **figures, "utterances_a_second": speed}, state.step
            )
            bar.update()
            bar.set_postfix(loss=f"{state.loss / state.utterances:.3f}")
            finished = state.epoch_step == total
            if config.evaluation_steps and state.step % config.evaluation_steps == 0 and not finished:
                _add_evaluation(job, state, history)
            if stop or (state.step % config.checkpoint_steps == 0 and not finished):
                _save_checkpoint(job, state)
            if stop:
                log.info(
                    "%s: a checkpoint is written at epoch %d, step %d; the same command goes on from it",
                    signal_name(stop[0]),
                    state.epoch,
                    state.step,
                )
                raise Stopped(stop[0])


def _add_evaluation(
    job: _Job, state: TrainingState, history: HistoryWriter, ends_epoch: bool = False
) -> None:
    """Evaluate and save the weights, then write a row of the history and a checkpoint."""
    task, run = job.task, job.run
    _check_weights(job, state)
    with job.evaluated_weights():
        metrics = _evaluate(job, state)
        row = {
            "epoch": state.epoch,
            "step": state.step,
            "learning_rate": float(np.asarray(job.optimizer.learning_rate)),
            "train_loss": state.loss / max(state.utterances, 1),
            **metrics,
            "seconds": state.seconds,
        }
        result = [metrics[task.metric], metrics["dev_loss"]]  # of equal error rates, the lower loss
        improved = state.best is None or result < state.best
        state.history.append(row)
        if improved:
            state.best, state.best_row = result, len(state.history)
            _save_weights(job, run.best_weights)
        _save_weights(job, run.last_weights)
        if job.config.kept_weights and job.distribution.chief:
            keep_weights(run, task.model, task.metric, state, job.config.kept_weights)
    lower_rate_on_plateau(job.optimizer, job.optimiser, state.history, state.best_row)
    state.loss, state.utterances, state.seconds = 0.0, 0, 0.0
    if ends_epoch:
        state.epoch, state.epoch_step = state.epoch + 1, 0
    # Before the checkpoint: a run killed in between evaluates again, and writes the row again.
    history.add(row)
    if job.config.log_weights:
        history.weights(task.model, state.step)
    _save_checkpoint(job, state)
    log.info(
        "epoch %d/%d  step %d  train_loss %.4f  %s  %.1f s%s",
        row["epoch"],
        job.config.epochs,
        state.step,
        row["train_loss"],
        _shown(metrics),
        row["seconds"],
        "  (best)" if improved else "",
    )
    examples = job.examples()
    history.examples(examples, state.step)
    for example in examples:
        log.info(
            "  %s\n    reference   %s\n    hypothesis  %s", example.id, example.reference, example.hypothesis
        )


def _finish_run(
    job: _Job,
    state: TrainingState,
    test: Callable[[], dict[str, float]] | None,
    export: Callable[[], None] | None,
) -> None:
    """Test, export, and write ``metrics.json``; the arguments are those of :func:`train`."""
    metrics = {"best": state.best_metrics(), "last": state.history[-1], "metric": job.task.metric}
    if state.initial:
        metrics["initial"] = state.initial
        _report_change(state, job.task.metric)
    if test:
        with job.evaluated_weights():
            metrics["test"] = job.distribution.from_chief(test)
    if export and job.distribution.chief:
        export()
    write_json(job.run.metrics, metrics)


def _shown(metrics: dict[str, float]) -> str:
    return "  ".join(f"{key} {value:.4f}" for key, value in metrics.items())


def _out_of_patience(state: TrainingState, config: TrainingConfig) -> bool:
    return config.patience > 0 and state.epoch - 1 - state.best_epoch >= config.patience


def _check_weights(job: _Job, state: TrainingState) -> None:
    """Raise TrainingError if a weight is not finite, in all processes."""
    largest = job.distribution.from_chief(partial(largest_weight, job.task.model))
    check_values(largest, state.step, job.run.path)


def _evaluate(job: _Job, state: TrainingState) -> dict[str, float]:
    """The dev figures; raise TrainingError, in all processes, if one of them is not finite."""
    metrics = job.distribution.from_chief(job.task.evaluate)
    check_values(metrics, state.step, job.run.path)
    return metrics


def _save_checkpoint(job: _Job, state: TrainingState) -> None:
    _check_weights(job, state)
    if job.distribution.chief:
        save_checkpoint(job.run.checkpoint, job.task.model, job.optimizer, state)


def _save_weights(job: _Job, path: Path) -> None:
    if job.distribution.chief:
        save_weights(job.task.model, path)
