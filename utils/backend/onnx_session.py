"""Opens a network file with ONNX Runtime."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from utils.errors import RunError
from utils.run_folder.checksums import verified

if TYPE_CHECKING:
    import onnxruntime

COPY_AGAIN = "copy the folder again"
"""Hint for a damaged file."""


def open_session(path: Path) -> onnxruntime.InferenceSession:
    """The network of a run folder, with as many threads as NumPy's matrix products have.

    Raises:
        RunError: the file is missing or damaged.
    """
    import onnxruntime  # here: it takes a quarter of a second and starts a thread

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = _threads()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.enable_mem_pattern = False  # it would remember every length of utterance
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(verified(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions have no other common class
        raise RunError(f"cannot read the network ({error})", where=path, hint=COPY_AGAIN) from error


def _threads() -> int:
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return int(limit) if limit.isdecimal() and int(limit) else len(os.sched_getaffinity(0))
