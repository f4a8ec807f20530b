"""Line coverage of the product packages in a test session; prints coverage.py's report at its end.

Load it with ``-p tests.support.line_coverage``, as ``make test`` does; ``[tool.coverage]`` in pyproject.toml
configures it. coverage.py's own tracer is not used: before Python 3.12 the interpreter calls it for each line
of TensorFlow and Keras too, which takes half as long as the tests themselves. SlipCover puts probes into the
code of our packages only, and removes those that were hit. With pytest-xdist each worker sends its lines to
the controller. A service that a test starts counts its own lines (``coverage_site/sitecustomize.py``).
"""

import io
import json
import os
import shutil
import tempfile
from pathlib import Path

import coverage
import pytest
import slipcover

ROOT = Path(__file__).parents[2]
WORKER_KEY = "executed_lines"
FOLDER = "LINE_COVERAGE_FOLDER"
"""Environment variable with the folder to which child processes write their lines."""

_report = coverage.Coverage(data_file=None, config_file=str(ROOT / "pyproject.toml"))
_packages = _report.get_option("run:source")
_probes = slipcover.Slipcover()
_executed: dict[str, set[int]] = {}
_summary: list[str] = []

if FOLDER not in os.environ:  # the controller; its workers inherit it
    os.environ[FOLDER] = tempfile.mkdtemp(prefix="line-coverage-")
# At import, because conftest.py already imports modules of the packages.
slipcover.ImportManager(
    _probes, slipcover.FileMatcher(sources=[str(ROOT / name) for name in _packages])
).__enter__()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """A worker of pytest-xdist has ended; a crashed worker has sent nothing."""
    _add(getattr(node, "workeroutput", {}).get(WORKER_KEY, {}))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send this worker's lines; in the controller, or without workers, report the lines of all."""
    files = _probes.get_coverage()["files"]
    lines = {str((ROOT / name).resolve()): list(file["executed_lines"]) for name, file in files.items()}
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput[WORKER_KEY] = lines
        return
    _add(lines)
    for path in Path(os.environ[FOLDER]).glob("*.json"):
        _add(json.loads(path.read_text(encoding="utf-8")))
    shutil.rmtree(os.environ.pop(FOLDER))
    for package in _packages:
        _add({str(path): [] for path in (ROOT / package).rglob("*.py")})
    _report.get_data().add_lines(_executed)
    table = io.StringIO()
    percent = _report.report(file=table)
    least = _report.get_option("report:fail_under")
    enough = percent >= least
    if not enough and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    result = f"{'' if enough else 'FAILED: '}line coverage {percent:.2f} %, at least {least:g} % required"
    _summary.extend([table.getvalue(), result])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the files with lines that no test executes, and the result."""
    terminalreporter.section("line coverage")
    for text in _summary:
        terminalreporter.write_line(text)


def _add(lines: dict[str, list[int]]) -> None:
    for path, numbers in lines.items():
        _executed.setdefault(path, set()).update(numbers)
