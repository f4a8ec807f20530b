"""Tests of parts of the service: fair queue, tokens, origins, rates, prompts, logs, child processes."""

import asyncio
import json
import logging
import multiprocessing
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import uvicorn
import websockets
from fastapi.datastructures import Headers
from starlette.exceptions import HTTPException

from serving import server as server_module
from serving.authentication import Tokens, is_allowed_origin, token_of
from serving.disconnection import unless_gone
from serving.endpoints.responses import response_body
from serving.endpoints.stream import Session
from serving.errors import RequestError, of_http_error
from serving.limits import Guard, Rates
from serving.live import worker as worker_module
from serving.live.worker import Open, Output, Ready
from serving.metrics import Metrics
from serving.server import listening_socket, share_cores
from serving.settings import Settings, read_tokens
from serving.work import uploads
from serving.work.child import Child, ChildDied, ChildTimeout
from serving.work.fair_queue import FairQueue, Flow, Task
from serving.work.models import Search, prompt_words
from tests.support.recordings import RECORDINGS
from utils.audio.reading import read_audio
from utils.audio.samples import write_wav
from utils.errors import ConfigError
from utils.hypotheses.recognition import Alternative, Recognition
from utils.mandarin.pinyin import hanzi_to_pinyin

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


def headers(**values: str) -> Headers:
    return Headers({name.replace("_", "-"): value for name, value in values.items()})


@pytest.mark.parametrize(
    "given",
    [
        headers(authorization=f"Bearer {TOKEN}"),
        headers(authorization=f"bearer  {TOKEN}"),
        headers(sec_websocket_protocol=f"speech, bearer.{TOKEN}"),
    ],
)
def test_a_token_in_any_header(given):
    tokens = Tokens(("another-token-of-this-service", TOKEN))
    assert token_of(given) == TOKEN
    assert tokens.accepts(token_of(given))
    assert not Tokens((TOKEN[:-1],)).accepts(token_of(given))


@pytest.mark.parametrize("value", ["", "Bearer", "Basic /w==", "Bearer \u00e4", "Token x"])
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
    path.write_text(f"{TOKEN}\n\nshort\n", encoding="utf-8")
    for given, variable, where in ((path, TOKEN, f"{path}:3"), (None, "short", "SPEECH_TOKENS")):
        with pytest.raises(ConfigError, match="16 or more") as caught:
            read_tokens(given, {"SPEECH_TOKENS": variable})
        assert caught.value.where == where
    assert TOKEN not in repr(Settings(tokens=(TOKEN,)))


@pytest.mark.parametrize(
    "name", ["upload_megabytes", "upload_seconds", "stream_seconds", "stream_idle_seconds"]
)
def test_limits_without_end_are_refused(name):
    with pytest.raises(ConfigError, match=f"serve.{name}=inf is not finite"):
        Settings(**{name: float("inf")})


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


def test_a_recording_without_a_place_is_refused_before_it_is_received():
    sent = []

    async def application(scope, receive, send):
        raise AssertionError("it would receive and store the recording")

    def check_places():
        raise RequestError(429, "too many")

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    guard = Guard(application, Settings(), Tokens(()), Metrics(), check_places)
    headers = [(b"content-type", b"multipart/form-data; boundary=x"), (b"content-length", b"20000000")]
    scope = {"type": "http", "method": "POST", "path": "/v1/phrases", "headers": headers, "client": ("a", 1)}
    asyncio.run(guard(scope, receive, send))
    assert sent[0]["status"] == 429
    sent.clear()
    scope |= {"path": "/v1/convert", "headers": [(b"content-length", b"0" * 5000 + b"5")]}
    asyncio.run(guard(scope, receive, send))
    assert sent[0]["status"] == 500, "the application was called"


def test_a_full_disk_is_not_called_a_wrong_request(caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("serving"), "propagate", True)
    error = HTTPException(400, "There was an error parsing the body")
    error.__cause__ = OSError(28, "No space left on device")
    found = of_http_error(error)
    assert (found.status_code, found.error["code"]) == (507, "space")
    assert "can't be stored" in caplog.text
    assert of_http_error(HTTPException(404, "Not Found")).status_code == 404


@contextmanager
def served(application, seconds: float = 0.5) -> Iterator[tuple[uvicorn.Server, tuple[str, int]]]:
    """An application behind the service's HTTP protocol, whose limit for each part is ``seconds``."""
    settings = Settings(port=0, receive_seconds=seconds)
    protocol = partial(server_module._Protocol, settings)
    server = uvicorn.Server(uvicorn.Config(application, http=protocol, lifespan="off", log_config=None))
    with listening_socket(settings) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield server, listener.getsockname()
        finally:
            server.should_exit = True
            thread.join(60.0)


async def large_answer(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": bytes(20_000_000)})


def _wait_for(condition) -> None:
    late = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < late
        time.sleep(0.05)


def test_a_client_that_does_not_read_its_response_is_cut_off():
    with served(large_answer) as (server, address), socket.create_connection(address) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        _wait_for(lambda: server.server_state.total_requests == 1)
        _wait_for(lambda: not server.server_state.connections)


def test_a_client_that_reads_its_response_slowly_gets_it_all():
    with served(large_answer, seconds=5.0) as (_, address), socket.create_connection(address) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        received = 0
        while data := client.recv(2_000_000):
            received += len(data)
            time.sleep(0.1)
    assert received > 20_000_000


def test_a_live_stream_may_be_longer_than_the_limit_of_a_request():
    async def echo_for_long(scope, receive, send):
        assert (await receive())["type"] == "websocket.connect"
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": message["text"]})

    async def talk(address: tuple[str, int]) -> int:
        answers = 0
        async with websockets.connect(f"ws://{address[0]}:{address[1]}/") as client:
            for _ in range(8):
                await client.send("a")
                answers += await asyncio.wait_for(client.recv(), 60.0) == "a"
                await asyncio.sleep(0.25)
        return answers

    with served(echo_for_long, seconds=0.5) as (_, address):
        assert asyncio.run(talk(address)) == 8


def test_line_ends_after_a_response_keep_no_connection():
    async def answer(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    with served(answer) as (server, address), socket.create_connection(address) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        while not client.recv(4096).endswith(b"ok"):
            pass
        assert len(server.server_state.connections) == 1
        client.sendall(b"\r\n")
        _wait_for(lambda: not server.server_state.connections)


def test_the_end_of_the_service_is_noticed_by_a_stream_that_always_has_sound():
    class Socket:
        async def receive(self):
            return {"type": "websocket.receive", "bytes": b"\0\0"}

    async def next_message() -> object:
        session = Session(Socket(), SimpleNamespace(settings=Settings()), known=True)
        assert await session._next(5.0) == b"\0\0"
        session.stop()
        return await session._next(5.0)

    with pytest.raises(RequestError, match="the service ends"):
        asyncio.run(next_message())


def test_an_unexpected_error_ends_its_own_stream_only(monkeypatch, caplog):
    class Stream:
        def __init__(self, models, settings):
            if settings.rate == 1:
                raise ValueError("in the settings")
            self.waiting, self._rate = False, settings.rate

        def take(self, message):
            self.waiting = True

        def advance(self):
            self.waiting = False
            if self._rate == 2:
                raise RecursionError
            return Output(taken=4)

    models = SimpleNamespace(sample_rate=16000, load_networks=lambda: 0.0)
    monkeypatch.setattr(worker_module, "models_of", lambda speech, language: models)
    monkeypatch.setattr(worker_module, "_Stream", Stream)
    monkeypatch.setattr(worker_module, "ALIVE_SECONDS", 0.05)
    ours, theirs = multiprocessing.Pipe()
    thread = threading.Thread(target=_until_closed, args=(worker_module.follow_streams, theirs))
    thread.start()
    assert isinstance(ours.recv(), Ready)
    for number in (1, 2, 3):
        ours.send((number, Open(number, Search())))
        ours.send((number, b"\0\0"))
    answers = []
    while len(answers) < 3:
        if answer := ours.recv():
            answers.append(answer)
    assert ours.recv() is None, "the process is alive"
    ours.close()
    thread.join(60.0)
    failed = {number: bool(output.failure and output.failure.internal) for number, output in answers}
    assert failed == {1: True, 2: True, 3: False}
    assert "ValueError: in the settings" in caplog.text


def _until_closed(run, pipe) -> None:
    with suppress(EOFError, OSError):
        run(pipe, Path("speech"), Path("language"))


def test_the_processes_with_models_share_the_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(8))
    for recognising, following, threads in [(8, 8, "1"), (1, 1, "4"), (2, 1, "2")]:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        share_cores(Settings(workers=recognising, live_workers=following))
        assert os.environ["OMP_NUM_THREADS"] == threads
    share_cores(Settings(workers=1, live_workers=1))
    assert os.environ["OMP_NUM_THREADS"] == "2", "the user's setting stays"


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("重庆路 chong2 qing4 lu4\n# 注释\n喆 zhe2 5", ["重庆路", "喆"]),
        ("以下是普通话的句子。", ["普通话"]),
        ("阿里巴巴、腾讯, and 百度", ["阿里巴巴", "腾讯", "百度"]),
        ("我们今天讨论圣尼各老和缪沛霖的WiFi。I see", ["圣尼各老", "缪沛霖", "WiFi"]),
        ("K 5\n3G、2024 A", ["K", "3G"]),
        ("T恤、卡拉OK, AT&T C++。５Ｇ 20", ["T恤", "卡拉OK", "AT&T", "C++", "5G"]),
        ("Hello!\nni3 hao3", ["Hello"]),
        ("超过八个汉字的一个名字 5", ["超过八个汉字的一个名字"]),
        ("", []),
    ],
)
def test_words_of_a_prompt(prompt, words):
    def word_starts(text: str) -> list[int]:
        """Of a dictionary with these words."""
        found = re.finditer("今天|讨论|圣尼各老|以下|普通话|句子|我们|.", text)
        return [word.start() for word in found]

    assert [word.text for word in prompt_words(prompt, word_starts).words] == words


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
    assert "this is text" in wrong[-1].problem


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


def test_segments_and_words_of_channels_are_in_the_order_of_their_starts():
    def segment(channel: str, hanzi: str, *starts: float) -> Recognition:
        times = tuple((start, start + 0.2) for start in starts)
        best = Alternative(tuple(hanzi_to_pinyin(hanzi)), hanzi, 0.0)
        return Recognition(0.0, 9.0, times, (best,), confidence=(0.9,) * len(starts), channel=channel)

    segments = [segment("left", "你好", 0.5, 6.0), segment("right", "是", 3.0)]
    body = json.loads(response_body("verbose_json", segments, 9.0, ("segment", "word")))
    found = [(each["id"], each["start"], each["channel"], each["text"]) for each in body["segments"]]
    assert found == [(0, 0.5, "left", "你"), (1, 3.0, "right", "是"), (2, 6.0, "left", "好")]
    assert [each["word"] for each in body["words"]] == ["你", "是", "好"]
