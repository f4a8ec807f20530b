"""Profiles a range of training steps, such as ``120-180``, for TensorBoard, in the run's folder ``logs``.

The profiler is TensorFlow's; on other backends a range is refused.
"""

import itertools
import logging
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np

from utils.errors import require

log = logging.getLogger("train")

Step = Callable[..., Any]


@dataclass(frozen=True)
class StepWindow:
    """Steps to profile, counted from 1 over the whole training, both ends included."""

    first: int
    last: int


def parse_window(text: str) -> StepWindow | None:
    """Parse ``"120-180"``; None for an empty text.

    Raises:
        ConfigError: the text is not two increasing numbers from 1 on.
    """
    if not text:
        return None
    match = re.fullmatch(r"(\d+)-(\d+)", text)
    window = StepWindow(int(match[1]), int(match[2])) if match else None
    require(
        window and 1 <= window.first <= window.last,
        f"training.profile is '{text}'",
        hint="the first and the last step to profile, such as 120-180",
    )
    return window


class StepProfiler(AbstractContextManager):
    """Profiles the steps of a window; without a window it does nothing.

    The profile is written when the window ends, or when training ends within it (an error, Ctrl-C).

    Args:
        window: see :func:`parse_window`.
        total_steps: number of steps of the whole training.
        logs: TensorBoard's folder; the profile is written to ``plugins/profile`` in it.

    Raises:
        ConfigError: the training ends before the window begins, or the backend is not TensorFlow.
    """

    def __init__(self, window: StepWindow | None, total_steps: int, logs: Path):
        if window:
            require(
                window.first <= total_steps,
                f"training.profile={window.first}-{window.last}, but the training has {total_steps} steps",
                hint="choose steps within it",
            )
            backend = keras.backend.backend()
            require(
                backend == "tensorflow",
                f"training.profile works on TensorFlow only, not on '{backend}'",
                hint="leave it out, or set KERAS_BACKEND=tensorflow",
            )
        self._window, self._logs = window, logs
        self._profiler: Any = None

    def __exit__(self, *_: object) -> None:
        self._stop()

    def watch(self, step: Step, done: int) -> Step:
        """Wrap the training step; results do not change.

        Args:
            step: a batch → losses.
            done: number of optimiser steps before the first call.
        """
        if self._window is None:
            return step
        numbers = itertools.count(done + 1)

        def watched(*batch: Any) -> Any:
            number = next(numbers)
            if not self._window.first <= number <= self._window.last:
                return step(*batch)
            if self._profiler is None:
                self._start()
            with self._profiler.Trace("train", step_num=number, _r=1):
                losses = np.asarray(step(*batch))  # waits until the step is computed
            if number == self._window.last:
                self._stop()
            return losses

        return watched

    def _start(self) -> None:
        import tensorflow as tf  # not on other backends

        self._profiler = tf.profiler.experimental
        self._profiler.start(str(self._logs))

    def _stop(self) -> None:
        if self._profiler is None:
            return
        self._profiler.stop()
        self._profiler = None
        log.info(
            "profile written: %s; pip install tensorboard-plugin-profile, tensorboard --logdir %s shows it",
            self._logs / "plugins" / "profile",
            self._logs,
        )
