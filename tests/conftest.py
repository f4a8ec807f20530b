"""A tiny corpus and tiny runs, made once a session. Keras is imported only when a test asks for a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tiny_corpus import write_tiny_corpus


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--nightly", action="store_true", help="mutations, kills: the full size, an hour or so")


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
    from tests.tiny_runs import write_speech_run

    return write_speech_run(tmp_path_factory.mktemp("runs") / "speech", tiny_manifest)


@pytest.fixture(scope="session")
def language_run(tmp_path_factory: pytest.TempPathFactory, tiny_manifest: Path) -> Path:
    """A finished language run (bigrams)."""
    from tests.tiny_runs import write_language_run

    return write_language_run(tmp_path_factory.mktemp("runs") / "language", tiny_manifest)
