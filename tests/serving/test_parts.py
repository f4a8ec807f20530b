"""Tests of parts of the service: fair queue, tokens, origins, rates, prompts, logs, child processes."""

import asyncio
import base64
import json
import logging
import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from fastapi.datastructures import Headers

from serving.authentication import Tokens, is_allowed_origin, token_of
from serving.disconnection import unless_gone
from serving.errors import RequestError
from serving.limits import Guard, Rates
from serving.live import opus
from serving.logs import JsonLines
from serving.metrics import Metrics
from serving.server import listening_socket
from serving.settings import Settings, read_tokens
from serving.work import uploads
from serving.work.child import Child, ChildDied, ChildTimeout
from serving.work.fair_queue import FairQueue, Flow, Task
from serving.work.models import Failure, prompt_words
from tests.support.recordings import RECORDINGS
from utils.audio.reading import read_audio, write_wav
from utils.errors import ConfigError

TOKEN = "a-token-of-enough-characters"


def taken(queue: FairQueue, longest: float = 0.0) -> list[str]:
    return [task.job for task in queue.take(longest)]


def test_a_short_request_overtakes_a_long_one():
    queue, long, short = FairQueue(), Flow(), Flow()
    for number in range(180):
        queue.put(Task(f"long {number}", 20.0), long)
    assert [taken(queue), taken(queue)] == [["long 0"], ["long 1"]]
    queue.put(Task("short", 3.0), short)
    assert [taken(queue), taken(queue)] == [["short"], ["long 2"]]


def test_long_requests_share_the_workers_by_seconds():
    queue, flows = FairQueue(), {name: Flow() for name in ("twenty", "ten")}
    for _ in range(12):
        queue.put(Task("twenty", 20.0), flows["twenty"])
        queue.put(Task("ten", 10.0), flows["ten"])
    first = [taken(queue)[0] for _ in range(9)]
    assert (first.count("twenty"), first.count("ten")) == (3, 6)


def test_short_pieces_are_joined_and_a_long_piece_comes_alone():
    queue = FairQueue()
    for name, seconds in (("a", 3.0), ("b", 4.0), ("c", 2.0), ("d", 5.0), ("e", 20.0), ("f", 1.0)):
        queue.put(Task(name, seconds), Flow())
    assert taken(queue, 10.0) == ["f", "c", "a", "b"]
    assert taken(queue, 10.0) == ["d"]
    assert taken(queue, 10.0) == ["e"]


def test_cancelled_pieces_are_left_out_and_failed_pieces_come_first_and_alone():
    queue = FairQueue()
    tasks = [Task(name, 1.0) for name in "abcd"]
    for task in tasks:
        queue.put(task, Flow())
    tasks[1].result.cancel()
    first = queue.take(2.0)
    assert [task.job for task in first] == ["a", "c"]
    for task in first:
        task.attempts = 1
    queue.put_back(first)
    assert [taken(queue, 9.0)[0], taken(queue, 9.0)[0]] in (["a", "c"], ["c", "a"])
    assert queue.waiting() == 1.0
    assert taken(queue, 9.0) == ["d"]
    queue.close()
    assert queue.take(9.0) is None


def test_every_item_is_taken_once_by_any_number_of_threads():
    queue = FairQueue()

    def take_all(_: int) -> list[int]:
        found: list[int] = []
        while tasks := queue.take(5.0):
            found += [task.job for task in tasks]
        return found

    with ThreadPoolExecutor(8) as pool:
        takers = [pool.submit(take_all, number) for number in range(4)]
        for begin in range(4):
            pool.submit(
                lambda begin=begin: [queue.put(Task(n, 1.0), Flow()) for n in range(begin, 400, 4)]
            ).result()
        queue.close()
        assert sorted(job for taker in takers for job in taker.result()) == list(range(400))


def headers(**values: str) -> Headers:
    return Headers({name.replace("_", "-"): value for name, value in values.items()})


@pytest.mark.parametrize(
    "given",
    [
        headers(authorization=f"Bearer {TOKEN}"),
        headers(authorization=f"bearer  {TOKEN}"),
        headers(authorization="Basic " + base64.b64encode(f"me:{TOKEN}".encode()).decode()),
        headers(sec_websocket_protocol=f"speech, bearer.{TOKEN}"),
    ],
)
def test_a_token_in_any_header(given):
    tokens = Tokens(("another-token-of-this-service", TOKEN))
    assert token_of(given) == TOKEN
    assert tokens.accepts(token_of(given))
    assert not Tokens((TOKEN[:-1],)).accepts(token_of(given))


@pytest.mark.parametrize("value", ["", "Bearer", "Basic ???", "Basic /w==", "Bearer \u00e4", "Token x"])
def test_an_invalid_token_gives_no_access(value):
    assert not Tokens((TOKEN,)).accepts(token_of(headers(authorization=value)))
    assert Tokens(()).accepts(None)


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("http://here:8000", True),
        ("https://here:8000", True),
        ("https://friend.example", True),
        ("https://evil.example", False),
        ("http://here:8000.evil.example", False),
        ("null", False),
    ],
)
def test_origins(origin, allowed):
    assert is_allowed_origin(headers(host="here:8000", origin=origin), ["https://friend.example"]) is allowed
    assert is_allowed_origin(headers(host="here:8000"), [])


def test_tokens_of_a_file_and_of_the_environment(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"# of the page\n{TOKEN}  # me\n\n", encoding="utf-8")
    assert read_tokens(path, {"SPEECH_TOKENS": f"x{TOKEN}, {TOKEN}"}) == (f"x{TOKEN}", TOKEN)
    path.write_text("# none\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="no token"):
        read_tokens(path, {})
    with pytest.raises(ConfigError, match="16 or more"):
        Settings(tokens=("short",))
    assert TOKEN not in repr(Settings(tokens=(TOKEN,)))


@pytest.mark.parametrize(
    "name", ["upload_megabytes", "upload_seconds", "stream_seconds", "stream_idle_seconds"]
)
def test_limits_without_end_are_refused(name):
    with pytest.raises(ConfigError, match=f"serve.{name}=inf is not finite"):
        Settings(**{name: float("inf")})


def test_opus_that_is_too_long_is_not_called_damaged(monkeypatch):
    class Decoding:
        def __init__(self, *arguments, **options):
            pass

        def receive(self) -> bytes:
            return bytes(2 * opus.SAMPLE_RATE)  # a second

    class Stream:
        fed, ended = 0, False

        async def feed(self, data: bytes) -> None:
            self.fed += len(data)

        def end(self) -> None:
            self.ended = True

    async def decoded(stream: Stream) -> opus.OpusDecoder:
        with ThreadPoolExecutor() as threads:
            decoder = opus.OpusDecoder(stream, threads, longest=3)
            while not stream.ended:
                await asyncio.sleep(0.01)
        return decoder

    monkeypatch.setattr(opus, "Child", Decoding)
    stream = Stream()
    decoder = asyncio.run(decoded(stream))
    assert decoder.too_long and decoder.problem is None
    assert stream.fed == 3 * 2 * opus.SAMPLE_RATE


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.org"])
def test_a_public_address_needs_a_token(host):
    with pytest.raises(ConfigError, match="needs a token"):
        Settings(host=host)
    assert Settings(host=host, tokens=(TOKEN,)).host == host
    assert Settings(host="::1").host == "::1"


def test_rates_are_counted_for_each_client(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    rates = Rates(6)
    assert [rates.wait("a") for _ in range(7)] == [0] * 6 + [11]
    assert rates.wait("b") == 0
    now[0] = 10.0
    assert [rates.wait("a"), rates.wait("a") > 0] == [0, True]
    assert Rates(0).wait("a") == 0


def test_the_end_of_a_request_without_a_body_is_not_waited_for():
    """While it sends a file, Starlette waits for the client's disconnection, not for the end of a body."""
    sent = []

    async def application(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive():
        await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    guard = Guard(application, Settings(), Tokens(()), Metrics())
    scope = {"type": "http", "method": "GET", "path": "/page/main.js", "headers": [], "client": ("a", 1)}
    asyncio.run(guard(scope, receive, send))
    assert [name for name, _ in sent[0]["headers"]] == [b"x-request-id"], "the connection stays open"


def test_answers_are_sent_without_waiting_for_acknowledgements():
    with listening_socket(Settings(port=0)) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("重庆路 chong2 qing4 lu4\n# 注释\n喆 zhe2 5", ["重庆路", "喆"]),
        ("以下是普通话的句子。", []),
        ("阿里巴巴、腾讯, and 百度", ["阿里巴巴", "腾讯", "百度"]),
        ("Hello!\nni3 hao3", []),
        ("超过八个汉字的一个名字 5", ["超过八个汉字的一个名字"]),
        ("", []),
    ],
)
def test_words_of_a_prompt(prompt, words):
    assert [word.hanzi for word in prompt_words(prompt).words] == words


def test_a_line_of_the_log_is_json():
    record = logging.makeLogRecord({"msg": "request", "levelname": "INFO", "status": 200})
    line = json.loads(JsonLines().format(record))
    assert (line["event"], line["level"], line["status"]) == ("request", "info", 200)


class Sent(list):
    """A pipe that records the messages sent."""

    send = list.append


def test_a_file_is_sent_in_pieces_and_ends_with_its_length_or_its_problem(tmp_path, monkeypatch):
    monkeypatch.setattr(uploads, "limit_process", lambda limits: None)  # they would remain in this process
    sound = np.concatenate([read_audio(path) for path in RECORDINGS * 2])
    write_wav(tmp_path / "long.wav", sound)
    whole, cut, wrong = Sent(), Sent(), Sent()
    uploads._read(whole, str(tmp_path / "long.wav"), 16000, uploads.ReadLimits(100.0))
    *pieces, end = whole
    assert len(pieces) > 1
    assert all(len(piece.samples) <= 20 * 16000 for piece in pieces)
    assert end == uploads.SoundEnd(len(sound) / 16000)
    uploads._read(cut, str(tmp_path / "long.wav"), 16000, uploads.ReadLimits(10.0))
    assert "longer than 10 s" in cut[-1].problem
    uploads._read(wrong, __file__, 16000, uploads.ReadLimits(10.0))
    assert "not readable" in wrong[-1].problem


def echo(pipe) -> None:
    while (message := pipe.recv()) != "end":
        if message == "silent":
            time.sleep(600)
        pipe.send(message)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_child_answers_dies_and_is_noticed(method):
    child = Child(echo, method=method)
    child.send({"a": 1})
    assert child.receive(240.0) == {"a": 1}
    os.kill(child.pid, signal.SIGTERM)  # from a terminal or a supervisor: only the parent reacts to it
    child.send("b")
    assert child.receive(240.0) == "b"
    child.send("silent")
    with pytest.raises(ChildTimeout):
        child.receive(0.1)
    threading.Timer(0.2, child.kill).start()
    with pytest.raises(ChildDied):
        child.receive(240.0)
    child.close()


class _Connection:
    """A request whose client leaves at the second look."""

    def __init__(self):
        self.looks = 0

    async def is_disconnected(self) -> bool:
        self.looks += 1
        return self.looks > 1


def test_the_work_for_a_client_that_leaves_is_ended():
    """Also before the first event of a stream, which may take as long as a recording without speech."""
    ended = []

    async def event_stream():
        try:
            await asyncio.sleep(60)
            yield "an event"
        finally:
            ended.append(True)

    with pytest.raises(RequestError, match="closed the connection"):
        asyncio.run(unless_gone(_Connection(), anext(event_stream())))
    assert ended


def test_the_first_event_comes_while_the_client_waits():
    async def event_stream():
        yield "an event"

    async def first() -> str:
        return await unless_gone(_Connection(), anext(event_stream()))

    assert asyncio.run(first()) == "an event"


def test_a_failure_names_a_place_only_if_the_error_does():
    assert Failure.of(ConfigError("wrong")).message == "wrong"
    assert Failure.of(ConfigError("wrong", where=Path("a.yaml"))) == Failure("wrong", where="a.yaml")
