"""Fixtures: tiny corpora, runs and a server for commands, made once per session.

Keras is imported only when a test asks for a run.
"""

from __future__ import annotations

import gc
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from tests.support.fork_server import ForkServer
from tests.support.tiny_corpus import write_tiny_corpus

if TYPE_CHECKING:
    from tests.support.tiny_commands import TinyRuns


# Files that share what takes long to start, and therefore run in one process: services and a browser; the
# server that forks commands, and its runs.
TOGETHER = ("tests/serving/", r"tests/project/test_(bad_days|kills|python_page|stalls)\.py")

# No time limit for an example, because the machine may be busy.
settings.register_profile("project", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("project")


def pytest_addoption(parser: pytest.Parser) -> None:
    message = "run only what is too long for every change, in full size: mutations, kills, whole matrices"
    parser.addoption("--nightly", action="store_true", help=message)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object | None:
    """``--dist loadfile`` with the files of each of ``TOGETHER`` as one."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class TogetherScheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return next((each for each in TOGETHER if re.match(each, nodeid)), super()._split_scope(nodeid))

    return TogetherScheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests marked ``nightly``; with --nightly select only these and tests with two sizes."""
    nightly = config.getoption("--nightly")

    def is_chosen(item: pytest.Item) -> bool:
        marked = item.get_closest_marker("nightly") is not None
        return marked or "nightly" in item.fixturenames if nightly else not marked

    config.hook.pytest_deselected(items=[item for item in items if not is_chosen(item)])
    items[:] = filter(is_chosen, items)


def pytest_collection_finish() -> None:
    """Exempt imported modules from garbage collection, which would traverse them again and again."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many processes were killed by tests that recorded it (tests/project/test_kills.py)."""
    counts: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", ()):
        counts.update(
            {name: number for name, number in report.user_properties if name.startswith("killed: ")}
        )
    for name, number in sorted(counts.items()):
        terminalreporter.write_line(f"{name} {number} times; nothing was lost or half-written")


@pytest.hookimpl(tryfirst=True)  # before the fixtures are made
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Every test begins with the same random numbers, also for weights without a seed."""
    if keras := sys.modules.get("keras"):
        keras.utils.set_random_seed(0)
    else:
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002


@pytest.fixture(scope="session")
def nightly(request: pytest.FixtureRequest) -> bool:
    """Whether tests are to take their full size."""
    return request.config.getoption("--nightly")


@pytest.fixture(scope="session")
def tiny_manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight recordings of chirps by four speakers, with transcripts."""
    return write_tiny_corpus(tmp_path_factory.mktemp("corpus"), utterances=8)


@pytest.fixture(scope="session")
def speech_run(tmp_path_factory: pytest.TempPathFactory, tiny_manifest: Path) -> Path:
    """A finished speech run (random weights)."""
    from tests.support.tiny_runs import write_speech_run

    return write_speech_run(tmp_path_factory.mktemp("runs") / "speech", tiny_manifest)


@pytest.fixture(scope="session")
def language_run(tmp_path_factory: pytest.TempPathFactory, tiny_manifest: Path) -> Path:
    """A finished language run (bigrams)."""
    from tests.support.tiny_runs import write_language_run

    return write_language_run(tmp_path_factory.mktemp("runs") / "language", tiny_manifest)


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """Runs our commands in separate processes that start at once."""
    with ForkServer(tmp_path_factory.mktemp("commands")) as server:
        yield server


@pytest.fixture(scope="session")
def tiny_runs(commands: ForkServer) -> TinyRuns:
    """Runs that train.py has made in a separate process, with their inputs."""
    from tests.support.tiny_commands import TinyRuns

    return TinyRuns(commands, commands.folder / "tiny")
