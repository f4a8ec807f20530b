"""Tests of the page behind nginx with the configuration of ``docs/serving.md``, below a path of the host."""

import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from serving.authentication import Tokens
from serving.page.sign_in import router
from tests.support.chromium import open_page
from tests.support.recordings import RECORDINGS
from tests.support.scripts import ROOT
from tests.support.service import TOKEN, Service, wait_until
from tests.support.talking import speak, wait_for_state

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
SETTINGS = """
daemon off;
pid {folder}/pid;
error_log {folder}/log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {map}
    server {{
        listen 127.0.0.1:{port};
        {location}
    }}
}}
"""


def documented_location(port: int) -> tuple[str, str]:
    """The location of the documentation, below ``/speech/``, and the map that its comment names."""
    text = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    location = re.search(r"^location / \{\n.*?^\}", text, re.DOTALL | re.MULTILINE)[0]
    named = re.search(r"# (map .*\})$", location, re.MULTILINE)[1]
    location = location.replace("location / {", "location /speech/ {")
    changed = location.replace("proxy_pass http://127.0.0.1:8000;", f"proxy_pass http://127.0.0.1:{port}/;")
    assert changed.count(f":{port}/;") == 1 and "/speech/" in changed
    return changed, named


@contextmanager
def proxy(service: Service, folder: Path) -> Iterator[str]:
    """nginx before a service; the address of the page."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    location, named = documented_location(int(service.url.rpartition(":")[2]))
    path = folder / "nginx.conf"
    path.write_text(SETTINGS.format(folder=folder, port=port, location=location, map=named), "utf-8")
    command = [NGINX, "-p", str(folder), "-c", str(path), "-e", str(folder / "log")]
    process = subprocess.Popen(command)
    try:
        wait_until(lambda: _listens(port), "nginx")
        yield f"http://127.0.0.1:{port}/speech/"
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def test_the_documented_proxy_makes_the_cookie_secure():
    """A browser must not send the token without TLS."""
    location, _ = documented_location(8000)
    values = {"$http_host": "speech.example.org", "$scheme": "https"}
    found = re.findall(r"proxy_set_header (\S+) (\S+);", location)
    headers = {name: values[value] for name, value in found if value in values}
    app = FastAPI()
    app.include_router(router)
    app.state.tokens = Tokens((TOKEN,))
    client = TestClient(app, base_url="http://127.0.0.1:8000")
    answer = client.post("/session", data={"token": TOKEN}, headers=headers, follow_redirects=False)
    assert answer.status_code == 303
    assert "secure" in answer.headers["set-cookie"].lower().split("; ")


@pytest.mark.skipif(not NGINX, reason="needs nginx (Debian: apt install nginx-light)")
def test_the_page_works_below_a_path_of_the_host(service_with_token, chromium, tmp_path):
    """Signing in, live recognition over the WebSocket, and a file; the cookie is for this path only."""
    with proxy(service_with_token, tmp_path) as address:
        shown = open_page(chromium, address, locale="en-GB")
        shown.page.fill("#token", TOKEN)
        shown.page.keyboard.press("Enter")
        shown.page.wait_for_selector("body.loaded")
        assert shown.page.url == address
        assert [cookie["path"] for cookie in shown.page.context.cookies()] == ["/speech"]
        speak(shown)
        spoken = shown.page.locator("li.final").count()
        assert spoken >= 1
        shown.page.set_input_files("#file", RECORDINGS[0])
        shown.page.wait_for_selector(f"li.final >> nth={spoken}")
        wait_for_state(shown, "idle")
        below = address.partition("://")[2]
        assert {request.partition("://")[2].startswith(below) for request in shown.requests} == {True}
        shown.close()
