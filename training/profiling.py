"""Profiles a range of training steps, such as ``120-180``, for TensorBoard, in the run's folder ``logs``.

The profiler is TensorFlow's; on other backends a range is refused.
"""

import itertools
import logging
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import keras

from utils.errors import require

log = logging.getLogger("train")


def parse_window(text: str) -> range:
    """The steps of ``"120-180"``, counted from 1 over the whole training; none for an empty text.

    Raises:
        ConfigError: the text is not two increasing numbers from 1 on.
    """
    if not text:
        return range(0)
    match = re.fullmatch(r"(\d+)-(\d+)", text)
    window = range(int(match[1]), int(match[2]) + 1) if match else range(0)
    require(
        window and window[0] >= 1,
        f"training.profile is '{text}'",
        hint="the first and the last step to profile, such as 120-180",
    )
    return window


class StepProfiler(AbstractContextManager):
    """Profiles the steps of a window; without steps it does nothing.

    The profile is written when the window ends, or when training ends within it (an error, Ctrl-C).

    Args:
        window: the steps, see :func:`parse_window`.
        total_steps: number of steps of the whole training.
        logs: TensorBoard's folder; the profile is written to ``plugins/profile`` in it.

    Raises:
        ConfigError: the training ends before the window begins, or the backend is not TensorFlow.
    """

    def __init__(self, window: range, total_steps: int, logs: Path):
        if window:
            require(
                window[0] <= total_steps,
                f"training.profile={window[0]}-{window[-1]}, but the training has {total_steps} steps",
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

    def watch(self, step: Callable[..., Any], done: int) -> Callable[..., Any]:
        """Wrap the training step; results do not change.

        Args:
            step: a batch → losses and figures.
            done: number of optimiser steps before the first call.
        """
        if not self._window:
            return step
        numbers = itertools.count(done + 1)

        def watched(*batch: Any) -> Any:
            number = next(numbers)
            if number not in self._window:
                return step(*batch)
            if self._profiler is None:
                self._start()
            with self._profiler.Trace("train", step_num=number, _r=1):
                result = step(*batch)  # its losses are NumPy's: the step is computed
            if number == self._window[-1]:
                self._stop()
            return result

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
