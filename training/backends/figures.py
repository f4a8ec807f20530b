"""Figures of a training step, for TensorBoard: the learning rate and the norm of the gradient."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops


def step_figures(optimizer: keras.optimizers.Optimizer, gradients: Sequence[Any]) -> dict[str, Any]:
    """``learning_rate`` of the next update, and ``gradient_norm``: the global norm before clipping.

    Args:
        optimizer: its loss scale, if any, is taken out of the norm.
        gradients: of the scaled loss; None for a weight that the loss does not depend on.
    """
    squares = [ops.sum(ops.square(ops.cast(each, "float32"))) for each in gradients if each is not None]
    scale = optimizer.scale_loss(ops.ones((), "float32"))
    norm = ops.sqrt(sum(squares, start=ops.zeros(()))) / scale
    return {"learning_rate": ops.convert_to_tensor(optimizer.learning_rate), "gradient_norm": norm}
