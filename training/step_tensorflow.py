"""The train step on TensorFlow: forward, gradient and update compiled into one graph for all batch shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf


def make_step(
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    losses: Callable[[dict[str, Any], bool], Any],
    xla: bool,
) -> Callable[[dict[str, np.ndarray]], tf.Tensor]:
    """``arrays → losses (batch,) float32``; see :func:`training.step.make_train_step`."""

    def step(arrays: dict[str, tf.Tensor]) -> tf.Tensor:
        with tf.GradientTape() as tape:
            each = losses(arrays, True)  # (batch,)
            scaled = optimizer.scale_loss(tf.reduce_mean(each))
        gradients = tape.gradient(scaled, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return each

    compiled: dict[str, Callable] = {}

    def call(arrays: dict[str, np.ndarray]) -> tf.Tensor:
        if "step" not in compiled:
            # Only the innermost feature dimension is fixed: one trace serves every batch.
            signature = {
                name: tf.TensorSpec([None] * min(value.ndim, 2) + list(value.shape[2:]), value.dtype)
                for name, value in arrays.items()
            }
            options = {"jit_compile": True} if xla else {"input_signature": [signature]}
            # Without AutoGraph: it reads the source again, and fails if that was edited since the start.
            compiled["step"] = tf.function(step, autograph=False, **options)
        return compiled["step"]({name: tf.convert_to_tensor(value) for name, value in arrays.items()})

    return call
