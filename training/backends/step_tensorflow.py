"""The training step on TensorFlow: forward pass, gradient and update as one graph.

The graph serves batches of all shapes; with XLA (TensorFlow's compiler) each shape has its own.
"""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from training.backends.figures import step_figures
from utils.backend.prediction import any_shapes


def make_step(
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    losses: Callable[[dict[str, Any], bool], Any],
    xla: bool,
    accepts_padding: bool,
) -> Callable[[dict[str, np.ndarray]], tuple[tf.Tensor, dict[str, tf.Tensor]]]:
    """``arrays → losses (batch,) float32, figures``; see :func:`training.backends.step.make_train_step`."""

    def step(arrays: dict[str, tf.Tensor]) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        with tf.GradientTape() as tape:
            row_losses = losses(arrays, True)  # (batch,)
            scaled = optimizer.scale_loss(tf.reduce_mean(row_losses))
        gradients = dense(tape.gradient(scaled, model.trainable_variables))
        figures = step_figures(optimizer, gradients)
        optimizer.apply(gradients, model.trainable_variables)
        return row_losses, figures

    graph = one_graph(step, xla)
    return lambda arrays: graph({name: tf.convert_to_tensor(value) for name, value in arrays.items()})


def one_graph(function: Callable[..., Any], xla: bool = False) -> Callable[..., Any]:
    """Build a function of arrays as a graph at its first call, for all shapes; with XLA, for each shape."""
    built: list[Callable[..., Any]] = []

    def call(*arguments: Any) -> Any:
        if not built:
            options = {"jit_compile": True} if xla else {"input_signature": any_shapes(arguments)}
            # Without AutoGraph: it reads the source again, and fails if it was edited since the start.
            built.append(tf.function(function, autograph=False, **options))
        return built[0](*arguments)

    return call


def dense(gradients: list[Any]) -> list[tf.Tensor | None]:
    """Convert sparse gradients to tensors; None stays.

    The gradient of an embedding has one slice for each occurrence of a token. The optimiser must get their
    sum: Keras would compute the clipping norm and the squares of AdamW for each slice.
    """
    return [None if each is None else tf.convert_to_tensor(each) for each in gradients]
