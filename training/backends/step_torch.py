"""The training step on PyTorch: forward pass, gradient and update, on the device that Keras uses."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import torch
from keras import ops

from training.backends.figures import step_figures


def make_step(
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    losses: Callable[[dict[str, Any], bool], Any],
    xla: bool,
    accepts_padding: bool,
) -> Callable[[dict[str, np.ndarray]], tuple[np.ndarray, dict[str, Any]]]:
    """``arrays → losses (batch,) float32, figures``; see :func:`training.backends.step.make_train_step`.

    ``xla`` must be False. Nothing is compiled, so shapes need no padding.
    """

    def call(arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, dict[str, Any]]:
        # The batch must be on the device of the weights.
        row_losses = losses(
            {name: ops.convert_to_tensor(value) for name, value in arrays.items()}, True
        )  # (batch,)
        variables = model.trainable_variables
        weights = [variable.value for variable in variables]
        # Weights that the loss does not depend on get None, as on the other backends.
        gradients = torch.autograd.grad(
            optimizer.scale_loss(ops.mean(row_losses)), weights, allow_unused=True
        )
        with torch.no_grad():
            figures = step_figures(optimizer, gradients)
            optimizer.apply(gradients, variables)
        return ops.convert_to_numpy(row_losses), figures

    return call
