"""Makes a Keras optimiser with its learning-rate schedule from a config; averages weights."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated

import keras
from keras import ops
from keras.optimizers import schedules

from utils.errors import require
from utils.limits import Count, Fraction, Limited, NotNegative, between, check_choice

ALGORITHMS = ("adam", "momentum")
SCHEDULES = ("cosine", "constant", "exponential", "inverse_time", "stages", "noam", "plateau")


@dataclass(frozen=True)
class RateStage(Limited, section="optimiser.stages"):
    """A number of steps at one learning rate."""

    steps: Count = 1000
    learning_rate: NotNegative = 1e-3


@dataclass(frozen=True)
class LayerRate(Limited, section="optimiser.layer_rates"):
    """A lower learning rate for some layers, as for the pre-trained ones below a new head.

    Attributes:
        layers: pattern of their names (``fnmatch``: ``block_[1-3]_*``).
        factor: of the learning rate.
        start: fraction of all steps before which the layers are not changed.
    """

    layers: str = ""
    factor: NotNegative = 1.0
    start: Fraction = 0.0


@dataclass(frozen=True)
class OptimiserConfig(Limited, section="optimiser"):
    """Algorithm and learning-rate schedule.

    Attributes:
        algorithm: ``adam``, with decoupled weight decay (AdamW; Loshchilov & Hutter, 2019), or ``momentum``.
        learning_rate: the highest rate: reached after the warm-up, or the initial rate of ``exponential``.
        schedule: ``cosine`` (decays to ``final_fraction`` of the rate at the last step), ``constant``,
            ``stages`` (piecewise constant), ``exponential`` (falls by the same factor at each step, from
            ``learning_rate`` to ``final_fraction`` of it), ``inverse_time`` (learning_rate / (1 + ``decay`` ·
            step), as ``decay`` of Keras 2), ``noam`` (after the warm-up it falls with the
            inverse square root of the step; Vaswani et al. 2017, section 5.3) or ``plateau`` (constant, and
            lowered by ``plateau_factor`` after ``plateau_patience`` evaluations without a better dev error).
        stages: stages of the schedule ``stages``; after them the last rate is kept.
        warmup_fraction: fraction of all steps in which the rate rises linearly from 0, for ``cosine``,
            ``constant`` and ``noam``; the other schedules have no warm-up.
        layer_rates: factors of the rate by layer, with ``adam``; the first pattern that matches counts.
        weight_decay: decoupled decay; not applied to biases and to scales and offsets of normalisation.
        momentum: momentum of the algorithm ``momentum``.
        clip_norm: maximum of the gradients' global norm; 0: no clipping.
        accumulation: batches whose mean gradient makes one update: as large a batch as the memory does not
            hold. Steps and schedules still count batches.
        average: decay of the exponential moving average of the weights that is evaluated and saved; 0: the
            weights are not averaged.
    """

    algorithm: str = "adam"
    learning_rate: NotNegative = 1e-3
    schedule: str = "cosine"
    stages: tuple[RateStage, ...] = ()
    warmup_fraction: Annotated[float, between(0, 1)] = 0.05
    final_fraction: NotNegative = 0.01
    layer_rates: tuple[LayerRate, ...] = ()
    weight_decay: NotNegative = 0.01
    beta_1: Fraction = 0.9
    beta_2: Fraction = 0.98
    epsilon: NotNegative = 1e-7
    momentum: Fraction = 0.9
    clip_norm: NotNegative = 5.0
    decay: NotNegative = 0.01
    plateau_factor: Fraction = 0.5
    plateau_patience: Count = 2
    accumulation: Count = 1
    average: Fraction = 0.0

    def __post_init__(self):
        super().__post_init__()
        check_choice(self, "optimiser", algorithm=ALGORITHMS, schedule=SCHEDULES)
        self._check_stages()
        require(
            self.schedule != "noam" or self.warmup_fraction > 0,
            "optimiser.schedule 'noam' without a warm-up",
            hint="optimiser.warmup_fraction must be above 0",
        )
        require(
            not self.layer_rates or self.algorithm == "adam",
            f"optimiser.layer_rates with optimiser.algorithm '{self.algorithm}'",
            hint="optimiser.algorithm: adam",
        )

    def _check_stages(self) -> None:
        hint = "stages: [{steps: 10000, learning_rate: 0.0005}, {steps: 5000, learning_rate: 0.0001}]"
        require(
            self.stages or self.schedule != "stages",
            "optimiser.schedule is 'stages', and optimiser.stages is empty",
            hint=hint,
        )
        require(
            not self.stages or self.schedule == "stages",
            f"optimiser.stages with optimiser.schedule '{self.schedule}'",
            hint="schedule: stages",
        )
        require(
            self.schedule != "exponential" or self.final_fraction > 0,
            "an exponential decay to 0",
            hint="optimiser.final_fraction must be above 0",
        )


def make_optimizer(
    config: OptimiserConfig, total_steps: int, layers: Sequence[str] = ()
) -> keras.optimizers.Optimizer:
    """Create an optimiser whose schedule spans ``total_steps``.

    With ``config.layer_rates``, ``layers`` names the layer of each variable that will be optimised.

    Under the policy ``mixed_float16`` it scales the loss, so that small gradients do not become zero.
    """
    common = {
        "learning_rate": _schedule(config, total_steps),
        "weight_decay": config.weight_decay,
        "global_clipnorm": config.clip_norm or None,
        "use_ema": config.average > 0,
        "ema_momentum": config.average,
        "gradient_accumulation_steps": config.accumulation if config.accumulation > 1 else None,
    }
    if config.algorithm == "momentum":
        optimizer = keras.optimizers.SGD(momentum=config.momentum, **common)
    else:
        betas = {"beta_1": config.beta_1, "beta_2": config.beta_2, "epsilon": config.epsilon}
        if config.layer_rates:
            optimizer = LayerwiseAdamW(config.layer_rates, layers, total_steps, **betas, **common)
        else:
            optimizer = keras.optimizers.AdamW(**betas, **common)
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta", "scale"])
    half = keras.config.dtype_policy().compute_dtype == "float16"
    return keras.optimizers.LossScaleOptimizer(optimizer) if half else optimizer


def layers_of(variables: Sequence[keras.Variable]) -> list[str]:
    """Name of the layer of each variable of a model."""
    return [variable.path.split("/")[0] for variable in variables]


@contextmanager
def averaged_weights(
    optimizer: keras.optimizers.Optimizer, variables: Sequence[keras.Variable]
) -> Iterator[None]:
    """Inside the block, the optimiser's variables hold their averages, if it keeps averages."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    if not inner.use_ema:
        yield
        return
    raw = [keras.ops.convert_to_numpy(variable) for variable in variables]
    inner.finalize_variable_values(variables)
    for variable in variables:
        # With JAX it now shares the array of its average, which predict_on_batch may delete.
        variable.assign(keras.ops.convert_to_numpy(variable).copy())
    try:
        yield
    finally:
        for variable, value in zip(variables, raw, strict=True):
            variable.assign(value)


def lower_rate_on_plateau(
    optimizer: keras.optimizers.Optimizer,
    config: OptimiserConfig,
    history: Sequence[Mapping[str, float]],
    best: int,
) -> None:
    """Lower the rate of the schedule ``plateau`` if the last evaluations were not better.

    Args:
        optimizer: made from ``config``; its rate is a variable.
        history: the evaluations so far, with the ``learning_rate`` before each.
        best: number of evaluations up to the best one; 0: none was better than the initial weights.
    """
    if config.schedule != "plateau":
        return
    rates = [row["learning_rate"] for row in history]
    lowered = next(
        (number for number in range(len(rates) - 1, 0, -1) if rates[number] < rates[number - 1]), 0
    )
    if len(history) - max(best, lowered) >= config.plateau_patience:
        optimizer.learning_rate = rates[-1] * config.plateau_factor


def _schedule(config: OptimiserConfig, total_steps: int) -> schedules.LearningRateSchedule | float:
    if config.schedule == "plateau":
        return config.learning_rate
    if config.schedule == "stages":
        return _staged(config.stages)
    if config.schedule == "exponential":
        return schedules.ExponentialDecay(config.learning_rate, total_steps, config.final_fraction)
    if config.schedule == "inverse_time":
        return schedules.InverseTimeDecay(config.learning_rate, decay_steps=1, decay_rate=config.decay)
    warmup = round(config.warmup_fraction * total_steps)
    if config.schedule == "noam":
        return InverseSquareRoot(config.learning_rate, max(warmup, 1))
    final_fraction, decay_steps = config.final_fraction, max(total_steps - warmup, 1)
    if config.schedule == "constant":
        # A cosine from a rate to the same rate: a warm-up, then a constant rate.
        final_fraction, decay_steps = 1.0, 1
    return schedules.CosineDecay(
        initial_learning_rate=0.0 if warmup else config.learning_rate,
        decay_steps=decay_steps,
        alpha=final_fraction,
        warmup_target=config.learning_rate if warmup else None,
        warmup_steps=warmup,
    )


def _staged(stages: Sequence[RateStage]) -> schedules.LearningRateSchedule:
    rates = [stage.learning_rate for stage in stages]
    if len(stages) == 1:
        rates, stages = rates * 2, [*stages, *stages]
    ends = [sum(stage.steps for stage in stages[: number + 1]) for number in range(len(stages) - 1)]
    # Keras changes the rate after the given step; steps are counted from 0.
    return schedules.PiecewiseConstantDecay([end - 1 for end in ends], rates)


class InverseSquareRoot(schedules.LearningRateSchedule):
    """A linear warm-up, then rate · √(warm-up / step) (Vaswani et al. 2017, equation 3, by its maximum)."""

    def __init__(self, rate: float, warmup: int):
        self.rate, self.warmup = rate, warmup

    def __call__(self, step):
        """The rate of the step, from 0."""
        step = ops.cast(step, "float32") + 1.0
        return self.rate * ops.minimum(step / self.warmup, ops.sqrt(self.warmup / step))

    def get_config(self):
        """The constructor's arguments."""
        return {"rate": self.rate, "warmup": self.warmup}


class LayerwiseAdamW(keras.optimizers.AdamW):
    """AdamW with other learning rates for some layers.

    Args:
        rates: factors by layer.
        layers: name of the layer of each variable, in the order of ``build``.
        total_steps: of the training, for ``LayerRate.start``.
        options: of AdamW.
    """

    def __init__(self, rates: Sequence[LayerRate], layers: Sequence[str], total_steps: int, **options):
        super().__init__(**options)
        self._total_steps = total_steps
        self._rate_of = [
            next((rate for rate in rates if fnmatchcase(layer, rate.layers)), LayerRate()) for layer in layers
        ]

    def update_step(self, gradient, variable, learning_rate):
        """The step of AdamW with the rate of the variable's layer."""
        rate = self._rate_of[self._get_variable_index(variable)]
        waits = self._iterations < round(rate.start * self._total_steps)
        factor = ops.where(waits, 0.0, rate.factor)
        super().update_step(gradient, variable, learning_rate * ops.cast(factor, learning_rate.dtype))
