"""The training step on JAX: forward pass, gradient and update as pure functions, compiled for few shapes.

JAX compiles once for each shape, so batches are padded to a few shapes, if the task accepts it
(:func:`utils.backend.prediction.pad_to_few_shapes`). The added rows have length 0: they are excluded from
the loss here, and from statistics by the models.
"""

from collections.abc import Callable
from typing import Any

import jax
import keras
import numpy as np
from keras import ops

from training.backends.figures import step_figures
from utils.backend.prediction import pad_to_few_shapes

Values = list[jax.Array]


def make_step(
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    losses: Callable[[dict[str, Any], bool], Any],
    xla: bool,
    accepts_padding: bool,
) -> Callable[[dict[str, np.ndarray]], tuple[np.ndarray, dict[str, Any]]]:
    """``arrays → losses (batch,) float32, figures``; see :func:`training.backends.step.make_train_step`.

    ``xla`` is ignored: JAX always compiles with XLA.
    """
    trainable, non_trainable = model.trainable_variables, model.non_trainable_variables

    def scaled_loss(values: Values, other_values: Values, optimizer_values: Values, arrays, rows):
        variables = [*trainable, *non_trainable, *optimizer.variables]
        mapping = list(zip(variables, [*values, *other_values, *optimizer_values], strict=True))
        with keras.StatelessScope(state_mapping=mapping) as scope:
            row_losses = losses(arrays, True)  # (batch,), with padding rows
            masked = ops.where(ops.arange(row_losses.shape[0]) < rows, row_losses, 0.0)
            scaled = optimizer.scale_loss(ops.sum(masked) / ops.cast(rows, masked.dtype))
        # The scope holds the new running statistics and dropout states.
        return scaled, (row_losses, [scope.get_current_value(variable) for variable in non_trainable])

    padded = pad_to_few_shapes if accepts_padding else dict
    gradient = jax.jit(jax.grad(scaled_loss, has_aux=True))
    # Separate: its shapes are the same for all batches, so it is compiled once.
    apply = jax.jit(optimizer.stateless_apply)

    @jax.jit
    def figures_of(optimizer_values: Values, gradients: Values) -> dict[str, jax.Array]:
        mapping = list(zip(optimizer.variables, optimizer_values, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            return step_figures(optimizer, gradients)

    def call(arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, dict[str, Any]]:
        rows = len(next(iter(arrays.values())))
        weights, state, optimizer_state = (
            [variable.value for variable in variables]
            for variables in (trainable, non_trainable, optimizer.variables)
        )
        gradients, (row_losses, state) = gradient(weights, state, optimizer_state, padded(arrays), rows)
        figures = figures_of(optimizer_state, gradients)
        weights, optimizer_state = apply(optimizer_state, gradients, weights)
        new_values = [*weights, *state, *optimizer_state]
        for variable, value in zip(
            [*trainable, *non_trainable, *optimizer.variables], new_values, strict=True
        ):
            variable.assign(value)
        return np.asarray(row_losses)[:rows], figures

    return call
