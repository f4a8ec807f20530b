"""Opens a network file with ONNX Runtime."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
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
    onnxruntime = load_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = session_threads()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.enable_mem_pattern = False  # it would remember every length of utterance
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(verified(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions have no other common class
        raise RunError(f"cannot read the network ({error})", where=path, hint=COPY_AGAIN) from error


def load_onnxruntime() -> ModuleType:
    """The package ``onnxruntime``, without its telemetry.

    Its Linux builds since 1.29 send data about models and machine to their maker, by a thread of their own;
    the variable has to be set before the import.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime  # here: it takes a quarter of a second

    return onnxruntime


def session_threads() -> int:
    """Threads of each network: those in ``OMP_NUM_THREADS``, or one for each core; one starts no thread."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return int(limit) if limit.isdecimal() and int(limit) else len(os.sched_getaffinity(0))
