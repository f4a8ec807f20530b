"""Compiles the training step and the dev losses for the Keras backend in use.

A step takes the arrays of a batch, updates the model's weights and returns the losses. The steps themselves
are in ``training/backends/step_*.py``, one for each backend.
"""

import importlib
import os
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import keras
import numpy as np
from keras import ops

from utils.errors import require

# Function: (arrays of a batch, training) → losses (batch,).
Losses = Callable[[dict[str, Any], bool], Any]

BACKENDS = ("tensorflow", "jax", "torch")


def make_train_step(
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    losses: Losses,
    xla: bool,
    accepts_padding: bool = True,
) -> Callable[[dict[str, np.ndarray]], tuple[Any, dict[str, Any]]]:
    """Compile ``arrays → losses (batch,) float32, figures`` with the update of the model's weights inside.

    The figures are those of :func:`training.backends.figures.step_figures`.

    The gradient is that of the *mean* over the batch. TensorFlow compiles once for all batch shapes (with XLA
    once for each), JAX once for each of a few shapes, PyTorch does not compile.

    Args:
        model: the model.
        optimizer: built on the model's trainable variables.
        losses: ``losses`` of a task.
        xla: whether TensorFlow compiles with XLA.
        accepts_padding: see :class:`training.loop.Task`.

    Raises:
        ConfigError: there is no step for the Keras backend, or it does not support a setting.
    """
    backend = keras.backend.backend()
    require(
        backend in BACKENDS,
        f"there is no training on the Keras backend '{backend}'",
        hint=f"set KERAS_BACKEND to one of: {', '.join(BACKENDS)}",
    )
    # By name: the other backends must not be loaded, and may not be installed.
    return importlib.import_module(f"training.backends.step_{backend}").make_step(
        model, optimizer, losses, xla, accepts_padding
    )


def check_xla(xla: bool) -> None:
    """Refuse XLA where there is none; call this before anything is computed.

    Raises:
        ConfigError: XLA is requested, and the Keras backend is PyTorch.
    """
    require(
        not xla or keras.backend.backend() != "torch",
        "training.xla=true needs another Keras backend than 'torch'",
        hint="set training.xla=false, or KERAS_BACKEND=tensorflow; jax always compiles with XLA",
    )


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of arrays if the backend supports it; else return it unchanged.

    A recursion over time, such as the CTC loss, is ten times as fast as a graph. TensorFlow compiles once for
    all shapes, JAX once for each, see :func:`utils.backend.prediction.pad_to_few_shapes`.
    """
    backend = keras.backend.backend()
    if backend == "tensorflow":
        return importlib.import_module("training.backends.step_tensorflow").one_graph(function)
    if backend == "jax":
        import jax  # not on other backends

        return jax.jit(function)
    return function


def make_deterministic() -> None:
    """Make the backend compute bit-for-bit repeatable results; call this before anything is computed.

    PyTorch then raises an error for operations without a deterministic implementation on the device.
    """
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf  # not on other backends

        tf.config.experimental.enable_op_determinism()
    elif backend == "jax":
        # XLA reads it when the first computation is compiled; CPUs are always deterministic.
        flags = os.environ.get("XLA_FLAGS", "")
        os.environ["XLA_FLAGS"] = f"{flags} --xla_gpu_deterministic_ops=true".strip()
    elif backend == "torch":
        import torch  # not on other backends

        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)


def in_parts(losses: Losses, parts: int) -> Losses:
    """The same losses, computed for so many parts of the rows: each part is a batch of its own.

    Layers with statistics of a batch have those of a part (ghost batch normalisation: Hoffer et al.,
    arXiv:1705.08741). Evaluation is as before.
    """
    if parts == 1:
        return losses

    def parted(arrays: dict[str, Any], training: bool) -> Any:
        if not training:
            return losses(arrays, training)
        rows = ops.shape(next(iter(arrays.values())))[0]
        # No part may be empty; rows of zeros are padding. JAX knows the number of rows when it compiles.
        missing = max(parts - rows, 0) if isinstance(rows, int) else ops.maximum(parts - rows, 0)
        arrays = {name: _pad_rows(value, missing) for name, value in arrays.items()}
        edges = [part * (rows + missing) // parts for part in range(parts + 1)]
        of_parts = [
            losses({name: value[start:end] for name, value in arrays.items()}, True)
            for start, end in pairwise(edges)
        ]
        return ops.concatenate(of_parts)[:rows]

    return parted


def _pad_rows(value: Any, missing: Any) -> Any:
    """Append rows of zeros: (B, …) → (B + missing, …)."""
    return ops.pad(value, [(0, missing), *[(0, 0)] * (len(value.shape) - 1)])
