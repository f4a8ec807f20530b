"""What is compiled, on the backend that KERAS_BACKEND names: the optimiser's step, and dev losses.

Arrays of a batch in, the loss of each utterance out. The steps themselves are in ``training/step_*.py``.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from utils.errors import ConfigError

Losses = Callable[[dict[str, Any], bool], Any]

BACKENDS = ("tensorflow", "jax", "torch")


def make_train_step(
    model: keras.Model, optimizer: keras.optimizers.Optimizer, losses: Losses, xla: bool
) -> Callable[[dict[str, np.ndarray]], Any]:
    """Compile ``arrays → losses (batch,) float32`` with the update of the model's weights inside.

    The gradient is that of the *mean* over the batch. TensorFlow compiles once for batches of any shape
    (under XLA each shape has its own), JAX once for each of a few shapes, PyTorch not at all.

    Raises:
        ConfigError: the Keras backend has no train step here, or can't do what is asked.
    """
    backend = keras.backend.backend()
    if backend not in BACKENDS:
        hint = f"set KERAS_BACKEND to one of: {', '.join(BACKENDS)}"
        raise ConfigError(f"there is no training on the Keras backend '{backend}'", hint=hint)
    # By name: a backend must not load another one, which may not even be installed.
    return importlib.import_module(f"training.backends.step_{backend}").make_step(
        model, optimizer, losses, xla
    )


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` of arrays compiled, where the backend does that; else as it is.

    A recursion over time such as the CTC loss is ten times as fast as a graph. TensorFlow's serves any
    shapes; JAX compiles each anew, see :func:`utils.backend.prediction.pad_to_few_shapes`.
    """
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf  # another backend must not load TensorFlow

        return tf.function(function, reduce_retracing=True, autograph=False)
    if backend == "jax":
        import jax  # another backend must not load JAX

        return jax.jit(function)
    return function


def make_deterministic() -> None:
    """Have the backend compute bit for bit the same each time; call it before anything is computed.

    PyTorch then refuses, by name, an operation that has no such way on the device.
    """
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf  # another backend must not load TensorFlow

        tf.config.experimental.enable_op_determinism()
    elif backend == "jax":
        # XLA reads it when the first computation is compiled; on a CPU it is deterministic anyway.
        flags = os.environ.get("XLA_FLAGS", "")
        os.environ["XLA_FLAGS"] = f"{flags} --xla_gpu_deterministic_ops=true".strip()
    elif backend == "torch":
        import torch  # another backend must not load PyTorch

        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
