"""Starts serve.py with options on a free port, as users do, and sends requests to it."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.support.recordings import RECORDINGS

ROOT = Path(__file__).parents[2]
TRANSCRIPTIONS = "/v1/audio/transcriptions"
TOKEN = "a-token-of-enough-characters"
PATIENCE = 240.0  # seconds; much more than an idle machine needs


@dataclass
class Service:
    """A running service.

    Attributes:
        process: the server.
        url: its address, without a path.
        log: its standard error so far.
    """

    process: subprocess.Popen
    url: str
    log: Path

    def events(self, name: str) -> list[dict[str, Any]]:
        """The lines of the log about an event."""
        lines = self.log.read_text(encoding="utf-8").splitlines()
        found = [json.loads(line) for line in lines if line.startswith("{")]
        return [line for line in found if line["event"] == name]

    def wait_for(self, name: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait until the log has this many lines about an event."""
        return wait_until(lambda: (found := self.events(name))[count - 1 :] and found, f"{count} × {name}")

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        """Status and body of a GET request's answer."""
        request = urllib.request.Request(self.url + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, wait for the end and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@contextmanager
def running_service(
    *options: str,
    folder: Path = ROOT,
    python: str = sys.executable,
    counts_lines: bool = False,
    **environment: str,
) -> Iterator[Service]:
    """Start ``serve.py`` of a folder on a free port; end it after the block if it still runs.

    Args:
        options: of its command line.
        folder: the project.
        python: the interpreter.
        counts_lines: whether the line coverage of the session counts its lines, which makes it start slower.
        environment: more variables.
    """
    command = [python, "serve.py", "--port", "0", "--live-workers", "1", *options]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if counts_lines and "LINE_COVERAGE_FOLDER" in os.environ:
        threads["PYTHONPATH"] = str(ROOT / "tests" / "support" / "coverage_site")
    with tempfile.TemporaryDirectory() as logs:
        log = Path(logs) / "log"
        with log.open("w", encoding="utf-8") as file:
            process = subprocess.Popen(
                command, cwd=folder, stderr=file, env={**os.environ, **threads, **environment}
            )
        try:
            url = wait_until(lambda: _address(log, process), "the address")
            service = Service(process, url, log)
            service.wait_for("a worker is ready")
            service.wait_for("a worker of live streams is ready")
            yield service
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(PATIENCE)
                finally:
                    process.kill()


def send(service: Service, content: bytes | None = None, **headers: str) -> httpx2.Response:
    """Request the transcript of a recording in a new connection."""
    files = {"file": ("a.ogg", content or RECORDINGS[-1].read_bytes())}
    return httpx2.post(service.url + TRANSCRIPTIONS, files=files, headers=headers, timeout=PATIENCE)


def wait_until(condition: Any, description: str) -> Any:
    """Wait until a function returns something and return it."""
    late = time.monotonic() + PATIENCE
    while time.monotonic() < late:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(f"waited {PATIENCE:g} s for {description}")


def _address(log: Path, process: subprocess.Popen) -> str | None:
    text = log.read_text(encoding="utf-8")
    if process.poll() is not None:
        raise AssertionError(f"the service has ended: {text}")
    found = re.search(r'"url": "(http://[^"]+)"', text)
    return found[1] if found else None
