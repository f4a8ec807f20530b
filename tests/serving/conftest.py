"""Fixtures: services that several files share, and a browser whose microphone plays a recording."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.support.recordings import RECORDING
from tests.support.service import TOKEN, Service, running_service
from tests.support.talking import chromium_with_microphone


@pytest.fixture(scope="session")
def open_service() -> Iterator[Service]:
    """A service without a token."""
    with running_service("--workers", "2", counts_lines=True) as service:
        yield service


@pytest.fixture(scope="session")
def guarded_service() -> Iterator[Service]:
    """A service with the token ``TOKEN``, one worker, and limits that few clients exceed."""
    options = "--workers 1 --live-workers 2 --streams 4 --stream-idle-seconds 3 --requests 4"
    options += " --upload-megabytes 1 --upload-seconds 120 --receive-seconds 4"
    with running_service(*options.split(), counts_lines=True, SPEECH_TOKENS=TOKEN) as service:
        service.wait_for("a worker of live streams is ready", 2)
        yield service


@pytest.fixture(scope="session")
def service_with_token() -> Iterator[Service]:
    """A service with the token ``TOKEN`` and the limits that users have."""
    with running_service("--workers", "1", SPEECH_TOKENS=TOKEN) as service:
        yield service


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium_with_microphone(RECORDING, tmp_path_factory.mktemp("sound")) as browser:
        yield browser
