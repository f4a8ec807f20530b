"""A service, and a browser whose microphone is a recording, for the tests of the page."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.support.service import RECORDINGS, Service, running_service
from tests.support.talking import chromium_with_microphone


@pytest.fixture(scope="module")
def page_service() -> Iterator[Service]:
    with running_service("--workers", "1") as service:
        yield service


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    recording = next(path for path in RECORDINGS if "18776500" in path.name)
    with chromium_with_microphone(recording, tmp_path_factory.mktemp("sound")) as browser:
        yield browser
