"""Optimiser settings → a Keras optimiser with its learning-rate schedule."""

from __future__ import annotations

from dataclasses import dataclass

import keras

from utils.config import at_least
from utils.errors import ConfigError

SCHEDULES = ("cosine", "constant")


@dataclass(frozen=True)
class OptimiserConfig:
    """AdamW (Loshchilov & Hutter, 2019) with warm-up, then cosine decay or a constant rate.

    Attributes:
        learning_rate: the highest rate, reached after the warm-up.
        schedule: ``cosine`` (down to ``final_fraction`` of it at the last step) or ``constant``.
        warmup_fraction: share of all steps in which the rate climbs linearly from 0.
        weight_decay: decoupled decay; biases and the scales and offsets of normalisation are left out.
        clip_norm: gradients are scaled down to this global norm; 0 leaves them as they are.
    """

    learning_rate: float = 1e-3
    schedule: str = "cosine"
    warmup_fraction: float = 0.05
    final_fraction: float = 0.01
    weight_decay: float = 0.01
    beta_1: float = 0.9
    beta_2: float = 0.98
    epsilon: float = 1e-7
    clip_norm: float = 5.0

    def __post_init__(self):
        at_least(self, "optimiser", learning_rate=0, warmup_fraction=0, weight_decay=0, clip_norm=0)
        if self.schedule not in SCHEDULES:
            hint = f"one of: {', '.join(SCHEDULES)}"
            raise ConfigError(f"unknown optimiser.schedule '{self.schedule}'", hint=hint)


def make_optimizer(config: OptimiserConfig, total_steps: int) -> keras.optimizers.Optimizer:
    """An optimiser whose schedule spans ``total_steps``.

    Under the policy ``mixed_float16`` it scales the loss, so that small gradients don't become zero.
    """
    optimizer = keras.optimizers.AdamW(
        learning_rate=_schedule(config, total_steps),
        weight_decay=config.weight_decay,
        beta_1=config.beta_1,
        beta_2=config.beta_2,
        epsilon=config.epsilon,
        global_clipnorm=config.clip_norm or None,
    )
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta", "scale"])
    half = keras.config.dtype_policy().compute_dtype == "float16"
    return keras.optimizers.LossScaleOptimizer(optimizer) if half else optimizer


def _schedule(config: OptimiserConfig, total_steps: int) -> keras.optimizers.schedules.LearningRateSchedule:
    warmup = round(config.warmup_fraction * total_steps)
    final_fraction, decay_steps = config.final_fraction, max(total_steps - warmup, 1)
    if config.schedule == "constant":
        # A cosine whose end is as high as its start: the warm-up with nothing after it.
        final_fraction, decay_steps = 1.0, 1
    return keras.optimizers.schedules.CosineDecay(
        initial_learning_rate=0.0 if warmup else config.learning_rate,
        decay_steps=decay_steps,
        alpha=final_fraction,
        warmup_target=config.learning_rate if warmup else None,
        warmup_steps=warmup,
    )
