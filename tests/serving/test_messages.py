"""Tests of the messages for requests and addresses that can't be used: what is wrong, and what to do."""

import asyncio
import errno
import socket

import httpx2
import pytest

from serving import server
from serving.app import create_app
from serving.server import listening_socket
from serving.settings import Settings
from tests.support.service import TOKEN, TRANSCRIPTIONS
from utils.errors import ConfigError

JSON = {"Content-Type": "application/json"}


def error_of(path: str, settings: Settings | None = None, **request) -> dict:
    """The error in the answer of a service that has not loaded its models."""

    async def ask() -> dict:
        transport = httpx2.ASGITransport(app=create_app(settings or Settings()))
        async with httpx2.AsyncClient(transport=transport, base_url="http://here") as client:
            return (await client.post(path, **request)).json()["error"]

    return asyncio.run(ask())


FORM = {"Content-Type": "application/x-www-form-urlencoded"}
NO_OBJECT, NO_FORM = "the body is not a JSON object", "the request is not a form with a file"


@pytest.mark.parametrize(
    ("path", "request_", "message", "param", "hint"),
    [
        (
            *("/v1/convert", {"content": b'{"text" "ni3"}', "headers": JSON}),
            *("the body is not valid JSON: Expecting ':' delimiter, at character 8", None, "quotes"),
        ),
        ("/v1/convert", {"content": b"[1]", "headers": JSON}, NO_OBJECT, None, "application/json"),
        ("/v1/convert", {"content": b'"ni3"', "headers": JSON}, NO_OBJECT, None, "application/json"),
        ("/v1/convert", {"content": b'{"text": "ni3"}', "headers": FORM}, NO_OBJECT, None, ""),
        (
            TRANSCRIPTIONS,
            {"content": b"RIFF", "headers": {"Content-Type": "audio/wav"}},
            NO_FORM,
            "file",
            "-F",
        ),
        (TRANSCRIPTIONS, {"content": b"RIFF"}, NO_FORM, "file", "-F file=@"),
        (
            *(TRANSCRIPTIONS, {"files": {"file": (None, "hello")}}),
            *("file: this is a text, not a file", "file", "-F file=@"),
        ),
    ],
)
def test_a_body_that_cannot_be_used(path, request_, message, param, hint):
    error = error_of(path, **request_)
    assert (error["message"], error["param"]) == (message, param)
    assert hint in error["hint"]


@pytest.mark.parametrize(
    ("fields", "message", "advice"),
    [
        ({"text": "a" * 5001}, "'text' has more than 5,000 characters", "send at most 5,000"),
        ({"text": ""}, "'text' is empty", "send a text"),
        ({"text": 1}, "'text' is not a string", "send a text in quotation marks"),
        ({}, "'text' is missing", "send this field"),
        ({"text": "ni3", "n_best": 0}, "'n_best' is less than 1", "send 1 or more"),
        ({"text": "ni3", "n_best": 21}, "'n_best' is more than 20", "send 20 or less"),
        ({"text": "ni3", "n_best": 1.5}, "'n_best' is not a whole number", "send a whole number"),
        ({"text": "ni3", "strict": "maybe"}, "'strict' is neither true nor false", "send true or false"),
        ({"text": "ni3", "n": 2}, "'n' is not a known field", "check the spelling, or leave it out"),
    ],
)
def test_a_wrong_field_is_named_with_its_limit(fields, message, advice):
    error = error_of("/v1/convert", json=fields)
    assert error["message"] == message
    assert error["param"] == message.split("'")[1]
    assert error["hint"] == f"{advice}; /docs describes all requests"


@pytest.mark.parametrize(
    ("field", "message", "advice"),
    [
        ({"temperature": "2"}, "'temperature' is more than 1", "send 1 or less"),
        ({"temperature": "nan"}, "'temperature' is not a finite number", "send a number"),
        ({"temperature": "hot"}, "'temperature' is not a number", "send a number"),
        (
            {"timestamp_granularities[]": ["word", "line"]},
            "'timestamp_granularities[]' is not 'segment' or 'word'",
            "send one of these values",
        ),
    ],
)
def test_a_wrong_field_of_a_form(field, message, advice):
    error = error_of(TRANSCRIPTIONS, data=field, files={"file": ("a.wav", b"")})
    assert (error["message"], error["hint"]) == (message, f"{advice}; /docs describes all requests")


@pytest.mark.parametrize("path", [TRANSCRIPTIONS, "/v1/phrases"])
def test_several_recordings_are_refused(path):
    files = [("file", ("a.wav", b"RIFF")), ("file", ("b.wav", b"RIFF"))]
    error = error_of(path, data={"phrases": "开灯"}, files=files)
    assert (error["message"], error["param"]) == ("2 files in a request", "file")
    assert "for each recording" in error["hint"]


@pytest.mark.parametrize("path", ["/session", "/v1/convert", "/v1/comparison", "/nowhere"])
def test_only_requests_with_a_recording_may_be_large(path):
    """Other requests are read into memory, and the one that signs in needs no token."""
    settings = Settings(tokens=(TOKEN,))
    headers = {} if path == "/session" else {"Authorization": f"Bearer {TOKEN}"}
    error = error_of(path, settings, files={"file": ("a.wav", bytes(1_100_000))}, headers=headers)
    assert (error["message"], error["code"]) == ("the request is larger than 1 MB", "too_large")


def test_a_text_that_is_too_large():
    error = error_of("/v1/convert", content=b" " * 1_000_001, headers=JSON)
    assert error["message"] == "the request is larger than 1 MB"
    assert (error["code"], error["param"]) == ("too_large", None)
    assert "Opus" not in error["hint"]
    settings = Settings(upload_megabytes=0.5)
    error = error_of(TRANSCRIPTIONS, settings, files={"file": ("a.wav", bytes(600_000))})
    assert (error["message"], error["param"]) == ("the request is larger than 0.5 MB", "file")
    assert "Opus" in error["hint"]


@pytest.mark.parametrize("host", ["nowhere.invalid", "a..b"])
def test_a_host_that_cannot_be_found(host, monkeypatch):
    def not_found(*_):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    if host.endswith("invalid"):  # without asking a name server
        monkeypatch.setattr(server.socket, "getaddrinfo", not_found)
    with pytest.raises(ConfigError, match=f"can't find the address of the host {host}") as caught:
        listening_socket(Settings(host=host, tokens=("a-token-of-enough-characters",)))
    assert "spelling of --host" in caught.value.hint


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.EADDRINUSE, "another program"),
        (errno.EADDRNOTAVAIL, "an address of this machine"),
        (errno.EACCES, "above 1023"),
    ],
)
def test_an_address_that_cannot_be_used(number, hint, monkeypatch):
    def refuse(*_, **__):
        raise OSError(number, "no")

    monkeypatch.setattr(server.socket, "create_server", refuse)
    with pytest.raises(ConfigError, match=r"can't listen on 127\.0\.0\.1:8000") as caught:
        listening_socket(Settings())
    assert hint in caught.value.hint


def test_a_port_that_does_not_exist():
    with pytest.raises(ConfigError, match="can't listen on") as caught:
        listening_socket(Settings(port=70_000))
    assert "another program" not in caught.value.hint
