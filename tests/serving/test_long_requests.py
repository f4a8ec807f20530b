"""Tests of long conversions and comparisons: cut into tasks, cancelled, refused, and finished at the end."""

import json
import os
import random
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from select import select

import httpx2
import psutil
import pytest

from model_language.pinyin_to_hanzi import PinyinToHanzi
from serving.errors import RequestError
from serving.work.conversion_tasks import LONGEST_LINE, conversion_tasks
from serving.work.models import ConvertJob
from tests.support.service import PATIENCE, Service, running_service, wait_until

CONVERT, COMPARISON, REPORT = "/v1/convert", "/v1/comparison", "/v1/comparison/report"
LONG_TEXT = {"text": "\n".join(["a" * 450] * 11), "n_best": 20}  # many seconds of work
SHORT_TEXT = {"text": "ni3 hao3"}
_SYLLABLES = [f"{name}{tone}" for name in ("ma", "shi", "jin", "tian", "hao", "guo") for tone in range(1, 5)]


def long_texts() -> dict[str, str]:
    """Two texts of other syllables, whose comparison takes seconds."""
    chosen = random.Random(0)
    return {name: " ".join(chosen.choices(_SYLLABLES, k=5900)) for name in ("reference", "pinyin")}


def short_texts() -> dict[str, str]:
    return {"reference": "jin1 tian1", "pinyin": "jin1 tian2"}


def job(*lines: str, **options: bool) -> ConvertJob:
    return ConvertJob(lines, 1, "", **{"strict": False, "recognised": False, "second_pass": False, **options})


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    """One worker, and one request at a time."""
    with running_service("--workers", "1", "--requests", "1", counts_lines=True) as service:
        yield service


def post(service: Service, path: str, timeout: float = PATIENCE, **content: dict) -> httpx2.Response:
    return httpx2.post(service.url + path, timeout=timeout, **content)


def leave(service: Service, path: str, **content: dict) -> None:
    """Send a request, see another one refused in the meantime, and close the connection."""
    request = httpx2.Request("POST", service.url + path, **content)
    with closing(HTTPConnection(request.url.host, request.url.port)) as connection:
        connection.request("POST", path, request.read(), dict(request.headers))
        # First it is open, beside the request of the metrics: a short one must not take its place.
        wait_until(lambda: "speech_connections 2.0" in service.get("/metrics")[1], "the request")

        def is_full() -> bool:
            if select([connection.sock], [], [], 0)[0]:  # a short one did: the long one comes again
                response = connection.getresponse()
                assert (response.status, bool(response.read())) == (429, True)
                connection.request("POST", path, request.read(), dict(request.headers))
            return post(service, CONVERT, json=SHORT_TEXT).status_code == 429

        wait_until(is_full, "a full service")
        assert post(service, COMPARISON, json=short_texts()).status_code == 429
        assert post(service, REPORT, data=short_texts()).status_code == 429


def statuses(service: Service, path: str) -> list[int]:
    return [event["status"] for event in service.events("request") if event["route"] == path]


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (CONVERT, {"json": LONG_TEXT}),
        (COMPARISON, {"json": long_texts()}),
        (REPORT, {"data": long_texts()}),
    ],
)
def test_the_place_of_a_client_that_leaves_is_free(service, path, content):
    leave(service, path, **content)
    wait_until(lambda: 499 in statuses(service, path), "the end of the request")
    assert post(service, CONVERT, 30.0, json=SHORT_TEXT).json()["text"] == "你好"
    assert post(service, COMPARISON, 30.0, json=short_texts()).status_code == 200


def test_a_comparison_is_finished_after_a_signal_to_all_processes():
    """As a supervisor sends it, also to the process that compares, and while that process starts."""
    with running_service("--workers", "1") as service, ThreadPoolExecutor(1) as pool:
        main = psutil.Process(service.process.pid)
        before = {child.pid for child in main.children(recursive=True)}
        answer = pool.submit(post, service, COMPARISON, json=long_texts())
        compares = wait_until(
            lambda: {child.pid for child in main.children(recursive=True)} - before, "a process that compares"
        )
        for pid in [*before, *compares, main.pid]:
            os.kill(pid, signal.SIGTERM)
        assert answer.result().status_code == 200
        assert service.process.wait(PATIENCE) == 128 + signal.SIGTERM
        events = [json.loads(line) for line in service.log.read_text(encoding="utf-8").splitlines()]
        assert events[-1]["event"] == "stopped by SIGTERM", "the log is JSON to its end"
        assert not any("error" in event for event in events)


def test_a_line_of_too_many_syllables_is_refused(service):
    assert conversion_tasks(job("a" * LONGEST_LINE))
    with pytest.raises(RequestError, match="line 2 has 501 syllables"):
        conversion_tasks(job("ni3", "a" * (LONGEST_LINE + 1)))
    answer = post(service, CONVERT, json={"text": "a" * 5000, "n_best": 20})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "text"


def test_a_text_in_tasks_becomes_what_its_lines_become(service):
    lines = ["jin1 tian1 tian1 qi4 hen3 hao3", "wo men qu Bei3jing1, hao ma?", "", "xian de 3 ge ren"] * 15
    answer = post(service, CONVERT, json={"text": "\n".join(lines)}).json()
    assert answer["text"].split("\n") == PinyinToHanzi().convert(lines)
    assert len(answer["lines"]) == len(lines)
    strict = post(service, CONVERT, json={"text": "ni3 hao3\n" * 60 + "ni3 hello", "strict": True})
    assert strict.status_code == 400
    assert "line 61, column 5" in strict.json()["error"]["message"]
