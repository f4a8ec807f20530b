"""Counts the executed lines of a child process; Python imports it at its start from PYTHONPATH.

:mod:`tests.support.line_coverage` names a folder in the environment; each process that ends normally writes
the lines that it has executed into it. A killed process writes nothing.
"""

import atexit
import json
import os
import uuid
from contextlib import suppress
from multiprocessing import util
from pathlib import Path

FOLDER = os.environ.get("LINE_COVERAGE_FOLDER")
ROOT = Path(__file__).parents[3]
_NEVER = 2**31 - 1  # hits of a probe


def count(folder: Path) -> None:
    """Count the lines of our packages from now on, and write them when the process ends."""
    import coverage
    import slipcover

    packages = coverage.Coverage(data_file=None, config_file=str(ROOT / "pyproject.toml"))
    sources = [str(ROOT / name) for name in packages.get_option("run:source")]
    # Its probes stay. To remove those that were hit it goes through the dictionaries of all modules, which
    # fails in whatever function runs just then if another thread changes one of them.
    probes = slipcover.Slipcover(d_miss_threshold=_NEVER)
    slipcover.ImportManager(probes, slipcover.FileMatcher(sources=sources)).__enter__()

    def write() -> None:
        files = probes.get_coverage()["files"]
        lines = {str((ROOT / name).resolve()): list(file["executed_lines"]) for name, file in files.items()}
        with suppress(OSError):  # the session ended before this process
            part = folder / uuid.uuid4().hex
            part.write_text(json.dumps(lines), encoding="utf-8")
            part.rename(part.with_suffix(".json"))  # a killed process leaves no incomplete file

    def after_fork(_: object) -> None:
        util.Finalize(None, write, exitpriority=0)

    atexit.register(write)
    # A forked process of multiprocessing ends without the functions of atexit.
    util.register_after_fork(probes, after_fork)


if FOLDER and Path(FOLDER).is_dir():
    count(Path(FOLDER))
