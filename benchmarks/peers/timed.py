"""Runs a task at each line ``run``, saves its last result at ``save FILE``, and answers with the seconds."""

import importlib
import time
from collections.abc import Sequence

import numpy as np

from benchmarks.peers.serve import Answer


def build_timed(function: str, inputs: str) -> Answer:
    """Prepare the work of ``module:function`` with the arrays of an .npz file, and run it once.

    Returns:
        lines → processor seconds of each, as text.
    """
    module, name = function.split(":")
    with np.load(inputs) as file:
        work = getattr(importlib.import_module(module), name)(dict(file))
    results = work()  # the first run compiles, loads and fills caches

    def answer(lines: Sequence[Sequence[str]]) -> list[str]:
        nonlocal results
        seconds = []
        for command, *values in lines:
            began = time.process_time()
            if command == "run":
                results = work()
            else:
                np.savez(values[0], **results)
            seconds.append(str(time.process_time() - began))
        return seconds

    return answer
