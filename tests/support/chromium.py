"""A real browser without a screen, driven over the DevTools protocol's pipe: needs nothing but Chromium.

Messages are JSON ended by a zero byte, on file descriptors 3 (to the browser) and 4 (from it). One browser
serves many pages; each :class:`Page` collects what went wrong in it and what it asked the network for.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
MISSING = "needs a Chromium (Debian: apt install chromium)"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--autoplay-policy=no-user-gesture-required",
    "--remote-debugging-pipe",
)
# The browser reads descriptor 3 and writes 4, whatever numbers the pipes have here (always 3 and more).
START = """\
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
PATIENCE = 120  # seconds for an answer, on a machine that does much else


def find_chromium() -> str | None:
    """The browser's path; None where there is none."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Chromium:
    """A running browser; a context manager, at whose end it is gone with all its processes."""

    def __init__(self, path: str) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        commands_out, self._commands = os.pipe()
        self._answers, answers_in = os.pipe()
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-S", "-c", START, str(commands_out), str(answers_in)),
                *(path, *FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"),
            ],
            pass_fds=(commands_out, answers_in),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(commands_out)
        os.close(answers_in)
        self._number, self._read = 0, b""
        self._answered: dict[int, dict[str, Any]] = {}
        self._pages: dict[str, Page] = {}

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._commands)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._answers)
        self._profile.cleanup()

    def open(self, address: str, width: int = 1280, height: int = 900) -> Page:
        """Open an address in a new page, as wide as asked for, and wait until it has loaded."""
        page = self.new_page(width, height)
        page.go(address)
        return page

    def new_page(self, width: int = 1280, height: int = 900) -> Page:
        """An empty page."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(self, session, target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.ask(f"{domain}.enable")
        page.resize(width, height)
        return page

    def ask(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its result.

        Raises:
            RuntimeError: the browser says that it can't.
            TimeoutError: it says nothing.
        """
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        number = self._number
        self.wait(lambda: number in self._answered, method)
        answer = self._answered.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def wait(self, until: Callable[[], bool], what: str) -> None:
        """Take what the browser says until something holds.

        Raises:
            TimeoutError: it doesn't.
        """
        end = time.monotonic() + PATIENCE
        while not until():
            ready, _, _ = select.select([self._answers], [], [], max(end - time.monotonic(), 0))
            chunk = os.read(self._answers, 1 << 20) if ready else b""
            if not chunk:
                raise TimeoutError(f"the browser doesn't answer; waited for {what}")
            *messages, self._read = (self._read + chunk).split(b"\0")
            for message in map(json.loads, messages):
                self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self._answered[message["id"]] = message
        elif message.get("sessionId") in self._pages:
            self._pages[message["sessionId"]].take(message["method"], message["params"])


class Page:
    """One page.

    Attributes:
        errors: exceptions, console errors and what the browser itself complains of.
        requests: addresses that it asked for, those of data in the page left out.
        loaded: whether its load event has come.
    """

    def __init__(self, browser: Chromium, session: str, target: str) -> None:
        self.browser, self.session, self.target = browser, session, target
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.loaded = False

    def go(self, address: str) -> None:
        """Go to an address and wait until it has loaded."""
        self.loaded = False
        self.ask("Page.navigate", url=address)
        self.browser.wait(lambda: self.loaded, f"{address} to load")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command for this page."""
        return self.browser.ask(method, self.session, **parameters)

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression; a promise is waited for.

        Raises:
            RuntimeError: it throws.
        """
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def press(self, key: str, code: int = 0, text: str = "") -> None:
        """Press and release a key, as a person would."""
        for kind in ("keyDown", "keyUp"):
            typed = {"text": text} if text and kind == "keyDown" else {}
            self.ask(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **typed
            )

    def resize(self, width: int, height: int) -> None:
        """Give the page another size, in CSS pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", **size)

    def picture(self, path: Path, clip: dict[str, float] | None = None) -> None:
        """A screenshot of the whole page, or of a part (x, y, width, height) of it."""
        if clip is None:
            size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"]}
        shot = self.ask("Page.captureScreenshot", clip={**clip, "scale": 1}, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        """Close it."""
        self.browser.ask("Target.closeTarget", targetId=self.target)

    def take(self, method: str, what: dict[str, Any]) -> None:
        """Note an event."""
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Runtime.exceptionThrown":
            details = what["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(str(one.get("value", one)) for one in what["args"]))
        elif method == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
            self.errors.append(what["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not what["request"]["url"].startswith("data:"):
            self.requests.append(what["request"]["url"])
