"""Opens a page in the system's Chromium and records its errors and requests.

Playwright drives the browser, which is not downloaded: tests are skipped where the system has none.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
MISSING = "needs a Chromium (Debian: apt install chromium)"
PATIENCE = 120  # seconds for a response, on a busy machine
# The browser resolves no name and makes no requests of its own (Playwright adds more such options).
FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    "--autoplay-policy=no-user-gesture-required",
)


@dataclass
class WatchedPage:
    """A page with its errors and requests.

    Attributes:
        page: Playwright's page.
        errors: exceptions, errors and warnings of the console and of the browser itself.
        requests: the requested addresses, without those of data inside the page.
    """

    page: Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._console)
        self.page.on("request", self._request)
        self.page.on("websocket", lambda socket: self.requests.append(socket.url))

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression; waits for a promise."""
        return self.page.evaluate(script)

    def close(self) -> None:
        """Close the page with its context."""
        self.page.context.close()

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self.errors.append(message.text)

    def _request(self, request: Request) -> None:
        if not request.url.startswith(("data:", "blob:")):
            self.requests.append(request.url)


@contextmanager
def open_chromium(*flags: str) -> Iterator[Browser]:
    """A running browser without a screen; the test is skipped where the system has no Chromium."""
    path = find_chromium()
    if path is None:
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*FLAGS, *flags])
        try:
            yield browser
        finally:
            browser.close()


def open_page(
    browser: Browser, address: str = "", width: int = 1280, height: int = 900, **context: Any
) -> WatchedPage:
    """A page in a new context, which has loaded the address.

    Args:
        browser: a running browser.
        address: address to load; without it the page stays empty.
        width, height: CSS pixels; below 600 the browser behaves as on a phone.
        context: further settings of Playwright's ``new_context``.
    """
    size = {"width": width, "height": height}
    settings = {"viewport": size, "is_mobile": width < 600, "has_touch": width < 600, **context}
    opened = browser.new_context(**settings)
    opened.set_default_timeout(1000 * PATIENCE)
    shown = WatchedPage(opened.new_page())
    if address:
        shown.page.goto(address)
    return shown


def find_chromium() -> str | None:
    """The browser's path, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)
