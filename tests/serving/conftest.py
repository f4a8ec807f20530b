"""Fixtures: two services that several files share, and a browser whose microphone plays a recording."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.support.service import RECORDINGS, TOKEN, Service, running_service
from tests.support.talking import chromium_with_microphone


@pytest.fixture(scope="session")
def open_service() -> Iterator[Service]:
    """A service without a token."""
    with running_service("--workers", "2", counts_lines=True) as service:
        yield service


@pytest.fixture(scope="session")
def guarded_service() -> Iterator[Service]:
    """A service with the token ``TOKEN``."""
    with running_service("--workers", "1", counts_lines=True, SPEECH_TOKENS=TOKEN) as service:
        yield service


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    recording = next(path for path in RECORDINGS if "18776500" in path.name)
    with chromium_with_microphone(recording, tmp_path_factory.mktemp("sound")) as browser:
        yield browser
