"""What is compiled: one optimiser step, arrays of a batch in, the loss of each utterance out; dev losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from utils.errors import ConfigError

Losses = Callable[[dict[str, Any], bool], Any]


def make_train_step(
    model: keras.Model, optimizer: keras.optimizers.Optimizer, losses: Losses, xla: bool
) -> Callable[[dict[str, np.ndarray]], Any]:
    """Compile ``arrays → losses (batch,) float32`` with the update of the model's weights inside.

    The gradient is that of the *mean* over the batch; batches of any shape share one compilation
    (under XLA each shape has its own).

    Raises:
        ConfigError: the Keras backend has no train step here yet.
    """
    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise ConfigError(f"training on the '{backend}' backend", hint="set KERAS_BACKEND=tensorflow")
    from training.step_tensorflow import make_step  # another backend must not load TensorFlow

    return make_step(model, optimizer, losses, xla)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` of arrays as a graph for any shapes, where the backend has one; else as it is.

    A recursion over time such as the CTC loss is ten times as fast as a graph.
    """
    if keras.backend.backend() != "tensorflow":
        return function
    import tensorflow as tf  # another backend must not load TensorFlow

    return tf.function(function, reduce_retracing=True, autograph=False)
