"""Tests of refused requests: no token, other origins, too many, too large, too slow; and their answers."""

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import numpy as np
import pytest

from tests.support.scripts import load_script
from tests.support.service import PATIENCE, ROOT, TOKEN, TRANSCRIPTIONS, Service, send, wait_until
from utils.audio.samples import write_wav
from utils.errors import UserError

TEXT = "如果无法控制"


@pytest.fixture(scope="module")
def service(guarded_service: Service) -> Service:
    return guarded_service


@pytest.fixture(scope="module")
def bearer() -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKEN}"}


PROBES = ("/healthz", "/readyz", "/metrics")


def test_without_a_token_only_probes_and_metrics(service, bearer):
    paths = [
        "/", "/docs", "/redoc", "/openapi.json", "/v1/models", TRANSCRIPTIONS,
        "/other", "/healthz/", "//healthz", "/v1/../healthz/../metrics", "/static/x",
    ]  # fmt: skip
    wrong = [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": TOKEN},
    ]
    assert {service.get(path, **headers)[0] for path in paths for headers in wrong} == {401}
    assert send(service).status_code == 401
    assert {service.get(path)[0] for path in PROBES} == {200}
    assert service.get("/v1/models", **bearer)[0] == 200
    assert httpx2.get(service.url + "/v1/models").headers["WWW-Authenticate"] == "Bearer"


def probed_until(ended: Callable[[], bool], service: Service) -> Counter[int]:
    """Statuses of probes without a token, 50 a second."""
    statuses: Counter[int] = Counter()
    with httpx2.Client(timeout=PATIENCE) as client:
        while not ended():
            for path in PROBES:
                statuses[client.get(service.url + path).status_code] += 1
                time.sleep(0.02)
    return statuses


def test_more_than_the_limit_is_429_with_a_time_to_wait(service, bearer):
    with ThreadPoolExecutor(25) as pool:
        sent = [pool.submit(send, service, **bearer) for _ in range(24)]
        probes = pool.submit(probed_until, lambda: all(each.done() for each in sent), service)
        answers = [each.result() for each in sent]
    assert probes.result().keys() == {200}, "a full service is a healthy one"
    counts = Counter(answer.status_code for answer in answers)
    assert counts.keys() == {200, 429}
    assert counts[200] >= 4
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert refused.json()["error"]["code"] == "overloaded"
    assert {answer.json()["text"] for answer in answers if answer.status_code == 200} == {TEXT}


def test_limits_of_size_and_length(service, bearer, tmp_path):
    large = send(service, bytes(1_200_000), **bearer)
    assert (large.status_code, large.json()["error"]["code"]) == (413, "too_large")

    def chunks():
        for _ in range(12):
            yield bytes(100_000)

    headers = {**bearer, "Content-Type": "multipart/form-data; boundary=x"}
    without_length = httpx2.post(
        service.url + TRANSCRIPTIONS, content=chunks(), headers=headers, timeout=PATIENCE
    )
    assert without_length.status_code in (400, 413)
    write_wav(tmp_path / "long.wav", np.zeros(130 * 1000, np.float32), 1000)
    long = send(service, (tmp_path / "long.wav").read_bytes(), **bearer)
    assert long.status_code == 400
    assert "longer than 120 s" in long.json()["error"]["message"]


def test_clients_that_send_slowly_are_cut_off(service, bearer):
    """Half a request line, half of the headers, or a slow body: the service ends each connection."""
    address = service.url.removeprefix("http://").split(":")
    head = f"POST {TRANSCRIPTIONS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
    body = "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 500000\r\n\r\n"
    beginnings = ["", "POST /v1", head, head + body]
    connections = [socket.create_connection((address[0], int(address[1])), PATIENCE) for _ in beginnings]
    for connection, beginning in zip(connections, beginnings, strict=True):
        connection.sendall(beginning.encode())
    ended: set[int] = set()
    late = time.monotonic() + PATIENCE
    while len(ended) < len(connections) and time.monotonic() < late:
        for number, connection in enumerate(connections):
            with contextlib.suppress(BlockingIOError, TimeoutError):
                connection.settimeout(0.2)
                try:
                    if number == len(connections) - 1 and number not in ended:
                        connection.sendall(b"-")
                    if not connection.recv(4096):
                        ended.add(number)
                except (ConnectionError, BrokenPipeError):
                    ended.add(number)
    assert len(ended) == len(connections)
    assert send(service, **bearer).status_code == 200


def test_requests_of_a_disconnected_client_are_dropped(service, bearer, tmp_path):
    sound = np.random.default_rng(0).standard_normal(100 * 16000).astype(np.float32) / 10
    write_wav(tmp_path / "long.wav", sound[: 30 * 16000])
    with contextlib.suppress(httpx2.TimeoutException), httpx2.Client(timeout=0.3) as client:
        files = {"file": ("a.wav", (tmp_path / "long.wav").read_bytes())}
        client.post(service.url + TRANSCRIPTIONS, files=files, headers=bearer)
    wait_until(lambda: [e for e in service.events("request") if e["status"] in (499, 200)], "its line")
    assert send(service, **bearer).status_code == 200


def test_the_log_has_neither_texts_nor_tokens(service, bearer):
    assert send(service, **bearer).status_code == 200
    found = wait_until(lambda: service.events("request"), "a line of the log")
    assert {"request", "method", "route", "status", "seconds", "received_bytes"} <= found[-1].keys()
    text = service.log.read_text(encoding="utf-8")
    assert TEXT not in text
    assert TOKEN not in text
    assert "Traceback" not in text


def test_options_come_from_the_environment_too(monkeypatch):
    """An option of the command line counts more."""
    served = []
    monkeypatch.setattr("serving.server.serve", served.append)
    for name, value in (
        ("PORT", "9000"),
        ("UPLOAD_SECONDS", "60"),
        ("ORIGINS", "https://a.org https://b.org"),
    ):
        monkeypatch.setenv(f"SPEECH_{name}", value)
    load_script("serve.py").main(["--port", "9001"])
    settings = served[0]
    assert (settings.port, settings.upload_seconds) == (9001, 60.0)
    assert settings.origins == ("https://a.org", "https://b.org")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "0.0.0.0"], "needs a token"),
        (["--speech", "nowhere"], "nowhere"),
        (["--speech", "pretrained/pinyin_to_hanzi"], "pretrained/pinyin_to_hanzi"),
        (["--tokens", "nowhere.txt"], "can't read the tokens"),
        (["--upload-megabytes", "0"], "upload_megabytes"),
    ],
)
def test_wrong_options_end_with_a_reason(options, message, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    with pytest.raises(UserError) as caught:
        load_script("serve.py").main(options)
    assert message in str(caught.value)


def test_damaged_models_end_the_service(tmp_path: Path):
    run = tmp_path / "speech"
    shutil.copytree(ROOT / "pretrained" / "audio_to_pinyin", run)
    (run / "network.onnx").write_bytes(b"damaged")
    workers = ["--workers", "1", "--live-workers", "1"]
    command = [sys.executable, "serve.py", "--port", "0", *workers, "--speech", str(run)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 2
    events = [json.loads(line) for line in done.stderr.splitlines()]
    reasons = [event for event in events if event["event"] == "the models can't be loaded"]
    assert reasons and all("network.onnx" in reason["where"] and reason["hint"] for reason in reasons)
