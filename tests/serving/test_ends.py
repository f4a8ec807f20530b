"""Tests of processes that end while clients wait: a killed worker, and the service itself."""

import concurrent.futures
import os
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx2
import psutil
import pytest

from tests.support.service import PATIENCE, running_service, send, wait_until

TEXT = "如果无法控制"
KILLS = 12


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_dead_workers_are_replaced_without_failed_requests(record_property):
    record_property("killed: a worker of serve", KILLS)
    with running_service("--workers", "2") as service, ThreadPoolExecutor(12) as pool:
        for number in range(KILLS):
            ready = service.wait_for("a worker is ready", 2 + number)
            answers = [pool.submit(send, service) for _ in range(12)]
            wait_until(lambda sent=answers: any(answer.done() for answer in sent), "the first answer")
            os.kill(ready[-1]["pid"], signal.SIGKILL)
            codes = Counter(answer.result().status_code for answer in answers)
            assert codes == {200: 12}
        service.wait_for("a worker is ready", 2 + KILLS)
        assert send(service).json()["text"] == TEXT
        assert f"speech_worker_deaths_total {KILLS}.0" in service.get("/metrics")[1]
        # Then the service ends during requests: each accepted request is answered.
        connections = [httpx2.Client() for _ in range(8)]
        for connection in connections:
            connection.get(f"{service.url}/healthz")
        answers = [pool.submit(send, service) for _ in connections]
        wait_until(lambda: any(answer.done() for answer in answers), "the first answer")
        children = psutil.Process(service.process.pid).children(recursive=True)
        service.process.send_signal(signal.SIGTERM)
        done, _ = concurrent.futures.wait(answers, PATIENCE)
        assert Counter(answer.result().status_code for answer in done) == {200: len(connections)}
        assert service.process.wait(PATIENCE) == 128 + signal.SIGTERM
        assert not psutil.wait_procs(children, timeout=PATIENCE)[1]
