"""Data-parallel training with ``tf.distribute``: the TensorFlow part of `training.distributed.distribution`.

Each replica (device) computes the losses and gradients of its part of a batch. Summed over all replicas they
equal those of one device with the whole batch. Each replica has other dropout seeds. In each process the
first device updates the weights, which are then copied to the others. The module also broadcasts data to all
processes, and finds the process that was lost if a collective operation fails; stop signals reach all
processes.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from model_speech.layers.normalisation import statistics_over_replicas
from training.backends.figures import step_figures
from training.backends.step_tensorflow import dense
from training.distributed.cluster import Cluster, answers
from utils.backend.prediction import any_shapes
from utils.errors import ConfigError, TrainingError
from utils.stop_signals import STOP_SIGNALS

# Function: (arrays of a batch, training) → losses (batch,); always called with training=True here.
Losses = Callable[[dict[str, Any], bool], Any]

_CHUNK_WORDS = 1 << 20  # int32 words that are sent at a time; 8 MB as float64
_FAILURES = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.FailedPreconditionError,
    tf.errors.InternalError,
)


def mirrored_strategy(virtual_devices: int) -> tf.distribute.Strategy | None:
    """A strategy for all GPUs of this machine, or for virtual CPU devices; None if there is only one.

    Raises:
        ConfigError: TensorFlow has already started, with other devices.
    """
    if virtual_devices:
        parts = [tf.config.LogicalDeviceConfiguration()] * virtual_devices
        try:
            tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], parts)
        except RuntimeError as error:
            raise ConfigError(f"virtual devices must be set at the start ({error})") from error
    kind = "CPU" if virtual_devices else "GPU"
    devices = [device.name for device in tf.config.list_logical_devices(kind)]
    return tf.distribute.MirroredStrategy(devices) if len(devices) > 1 else None


def multi_worker_strategy() -> tf.distribute.Strategy:
    """A strategy for all devices of all processes in TF_CONFIG, which TensorFlow reads again.

    Raises:
        ConfigError: TensorFlow cannot start its server.
    """
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except (RuntimeError, tf.errors.UnknownError) as error:
        raise ConfigError(f"the server of this worker doesn't start ({error})") from error


@contextmanager
def lost_workers_named(cluster: Cluster) -> Iterator[None]:
    """Turn the failure of a collective operation into an error that names the lost process.

    Raises:
        TrainingError: another process was lost.
    """
    try:
        yield
    except _FAILURES as error:
        lost = _lost(str(error), cluster)
        if not lost:
            raise
        raise TrainingError(
            f"lost {', '.join(lost)}",
            hint="see its last messages; the last checkpoint is complete: start the same command again, "
            "with any number of workers",
        ) from error


def build_replicated(strategy: tf.distribute.Strategy, build: Callable[[], keras.Model]) -> keras.Model:
    """Build a functional model whose variables have a copy on each device."""
    with strategy.scope():
        model = build()
    # The same layers in a model without a strategy: its predict_on_batch runs on the first device only,
    # instead of on all devices with the whole batch each.
    return keras.Model(model.input, model.output, name=model.name)


def first_copies(strategy: tf.distribute.Strategy, variables: list[keras.Variable]) -> list[tf.Variable]:
    """The copies on this process's first device, which the optimiser updates."""
    return [_copies(strategy, variable)[0] for variable in variables]


def vary_dropout(strategy: tf.distribute.Strategy, model: keras.Model) -> None:
    """Give each replica different random seeds, so that dropout differs between the shards."""
    states = [variable for variable in model.variables if variable.path.endswith("seed_generator_state")]

    def shift() -> None:
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        for state in states:
            state.assign(state + tf.cast(tf.stack([replica, 0]), state.value.dtype))

    if states:
        tf.function(lambda: strategy.run(shift), autograph=False)()


def make_replicated_step(
    strategy: tf.distribute.Strategy,
    shard: tuple[int, int],
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    losses: Losses,
    xla: bool,
    received: list[int],
    stop: list[int],
) -> Callable[[dict[str, np.ndarray], int], tuple[np.ndarray, dict[str, Any]]]:
    """Compile ``arrays of this process's shard, rows of the batch → losses (rows,) of the batch, figures``.

    The gradient is that of the mean over the whole batch. Shards are padded with rows of zeros, so that all
    devices have the same number of rows; the model must treat zeros as padding, with a finite loss.

    Args:
        strategy: the strategy with which the model was built.
        shard: (index, count) of processes: row i of a batch is in shard i % count.
        model: replicated model from :func:`build_replicated`.
        optimizer: built on :func:`first_copies`.
        losses: ``losses`` of a task.
        xla: compile with XLA, once for each batch shape, what each device computes between two exchanges.
        received: signals received by this process.
        stop: gets the signals that any process had received before a step, in all processes after that step.
            A signal during the step may not act at once: the other processes would go on without this one.
    """
    devices = strategy.num_replicas_in_sync // shard[1]
    replica = _make_replica(shard, devices, model, optimizer, losses)
    copies = [_copies(strategy, variable) for variable in model.trainable_variables]
    first = [variables[0] for variables in copies]

    def step(arrays: dict[str, tf.Tensor], local_rows: tf.Tensor, rows: tf.Tensor, stopping: tf.Tensor):
        # XLA compiles no function of several devices: TensorFlow cuts it into the parts of each device.
        with tf.xla.experimental.jit_scope(compile_ops=xla):
            gradients, sums = strategy.run(replica, args=(arrays, local_rows, rows, stopping))
            local = [None if gradient is None else _first(strategy, gradient) for gradient in gradients]
            figures = step_figures(optimizer, local)
            optimizer.apply(local, first)
            for variable, *others in copies:
                for other in others:
                    other.assign(variable)
            return _first(strategy, sums), figures

    compiled: dict[str, Callable] = {}

    def call(arrays: dict[str, np.ndarray], rows: int) -> tuple[np.ndarray, dict[str, Any]]:
        local_rows = len(next(iter(arrays.values())))
        arrays = {name: _whole_multiple(value, devices) for name, value in arrays.items()}
        if "step" not in compiled:
            scalars = [tf.TensorSpec([], tf.int32)] * 2
            stopping = tf.TensorSpec([len(STOP_SIGNALS)], tf.float32)
            signature = [any_shapes(arrays), *scalars, stopping]
            compiled["step"] = tf.function(step, autograph=False, input_signature=signature)
        with tf.device("CPU:0"):  # from there each device takes its part
            tensors = {name: tf.convert_to_tensor(value) for name, value in arrays.items()}
            scalars = tf.constant(local_rows), tf.constant(rows)
            stopping = tf.constant([float(number in received) for number in STOP_SIGNALS])
        sums, figures = compiled["step"](tensors, *scalars, stopping)
        sums = sums.numpy()  # (rows + signals,)
        if not stop:
            stop.extend(number for number, noted in zip(STOP_SIGNALS, sums[rows:], strict=True) if noted)
        return sums[:rows], figures

    return call


def _make_replica(
    shard: tuple[int, int],
    devices: int,
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    losses: Losses,
) -> Callable[..., tuple[list[tf.Tensor | None], tf.Tensor]]:
    """Make the function that runs on each of a process's ``devices``.

    Its arguments: the padded arrays of the process's shard; ``local_rows``, the number of its rows without
    padding; ``rows``, the number of rows in the whole batch; ``stopping``, 1.0 for each of ``STOP_SIGNALS``
    that this process has received, else 0.0. It returns sums over all replicas: the gradients, and the losses
    of the whole batch followed by ``stopping``.
    """
    index, count = shard

    def replica(arrays: dict[str, tf.Tensor], local_rows: tf.Tensor, rows: tf.Tensor, stopping: tf.Tensor):
        context = tf.distribute.get_replica_context()
        size = tf.shape(next(iter(arrays.values())))[0] // devices
        start = (context.replica_id_in_sync_group - index * devices) * size
        arrays = {name: value[start : start + size] for name, value in arrays.items()}
        row = start + tf.range(size)  # in this process's shard

        def total(values: Any) -> Any:
            return context.all_reduce(tf.distribute.ReduceOp.SUM, values)

        with tf.GradientTape() as tape, statistics_over_replicas(total):
            row_losses = losses(arrays, True)  # (size,)
            row_losses = tf.where(row < local_rows, row_losses, 0.0)
            scaled = optimizer.scale_loss(tf.reduce_sum(row_losses) / tf.cast(rows, row_losses.dtype))
            gradients = dense(tape.gradient(scaled, model.trainable_variables))
        batch_row = tf.where(row < local_rows, row * count + index, 0)
        batch_losses = tf.tensor_scatter_nd_add(tf.zeros([rows]), batch_row[:, None], row_losses)
        known = [gradient for gradient in gradients if gradient is not None]
        *known, sums = total([*known, tf.concat([batch_losses, stopping], axis=0)])
        return [None if gradient is None else known.pop(0) for gradient in gradients], sums

    return replica


def make_broadcast(strategy: tf.distribute.Strategy, shard: tuple[int, int]) -> Callable[[bytes, int], bytes]:
    """Make ``data, source → the data of process source``; all processes must call it together."""
    index, count = shard
    first = index * strategy.num_replicas_in_sync // count

    def replica(words: tf.Tensor) -> tf.Tensor:
        context = tf.distribute.get_replica_context()
        own = tf.cast(tf.equal(context.replica_id_in_sync_group, first), words.dtype)
        return context.all_reduce(tf.distribute.ReduceOp.SUM, words * own)

    # Float64 sums are available on all devices, and exact for 32-bit integers.
    total = tf.function(
        lambda words: _first(strategy, strategy.run(replica, args=(words,))),
        autograph=False,
        input_signature=[tf.TensorSpec([None], tf.float64)],
    )

    def broadcast(data: bytes, source: int) -> bytes:
        data = data if index == source else b""  # the sum with zeros is the data of the source
        size = int(total(np.array([len(data)], np.float64)).numpy()[0])
        words = np.zeros(-(-size // 4), np.int32)
        words.view(np.uint8)[: len(data)] = np.frombuffer(data, np.uint8)
        for start in range(0, len(words), _CHUNK_WORDS):
            part = slice(start, start + _CHUNK_WORDS)
            words[part] = total(words[part].astype(np.float64)).numpy()
        return words.tobytes()[:size]

    return broadcast


def _copies(strategy: tf.distribute.Strategy, variable: keras.Variable) -> tuple[tf.Variable, ...]:
    return strategy.experimental_local_results(variable.value)


def _first(strategy: tf.distribute.Strategy, value: Any) -> tf.Tensor:
    return strategy.experimental_local_results(value)[0]


def _whole_multiple(array: np.ndarray, devices: int) -> np.ndarray:
    """Pad with rows of zeros: (B, …) → (n · devices, …) with n at least 1."""
    rows = max(-(-len(array) // devices), 1) * devices
    return np.pad(array, [(0, rows - len(array)), *[(0, 0)] * (array.ndim - 1)])


def _lost(message: str, cluster: Cluster) -> list[str]:
    """Lost processes: those that the message names, else those whose address does not answer."""
    named = {f"{job} {index}" for job, index in re.findall(r"/job:(\w+)/replica:\d+/task:(\d+)", message)}
    others = [index for index in range(len(cluster.names)) if index != cluster.index]
    lost = [index for index in others if cluster.names[index] in named]
    lost = lost or [index for index in others if not answers(cluster.addresses[index])]
    return [cluster.describe(index) for index in lost]
