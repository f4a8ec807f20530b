"""Options of serve.py in; its address, while it runs as a process of its own, out."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import requests

ROOT = Path(__file__).parents[2]
PATIENCE = 120  # seconds until it answers, on a machine that does much else


@contextmanager
def running_service(
    *options: str, environment: Mapping[str, str] | None = None, path: str = "readyz"
) -> Iterator[str]:
    """The address of a service, such as ``http://127.0.0.1:4711``, that answers requests for ``path``."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "serve.py", "--port", str(port), *options]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + PATIENCE
        while not _answers(f"{address}/{path}"):
            assert process.poll() is None, f"serve.py ended with {process.returncode}"
            assert time.monotonic() < end, "serve.py does not answer"
            time.sleep(0.2)
        yield address
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def _answers(address: str) -> bool:
    try:
        return requests.get(address, timeout=PATIENCE).status_code == 200
    except requests.ConnectionError:
        return False
