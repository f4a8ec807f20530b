"""Tests of pages of other origins: what a browser lets them read, and which origins may be named."""

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urljoin

import httpx2
import pytest
import uvicorn

from serving.app import create_app
from serving.server import listening_socket
from serving.settings import Settings
from tests.support.chromium import open_page
from tests.support.service import wait_until
from utils.errors import ConfigError

TOKEN = "a-token-of-enough-characters"
FRIEND = "https://friend.example"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
ASKS = {
    "Origin": FRIEND,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization, content-type, x-stainless-retry-count",
}


def answers(settings: Settings, *requests: tuple) -> list[httpx2.Response]:
    """The answers of a service that has not loaded its models to (method, path, headers, content)."""
    app = create_app(settings)

    @app.get("/broken")
    async def broken() -> None:
        raise ZeroDivisionError

    async def ask() -> list[httpx2.Response]:
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://here:8000") as client:
            return [
                await client.request(method, path, headers=headers, content=content)
                for method, path, headers, content in requests
            ]

    return asyncio.run(ask())


def test_a_browser_may_ask_without_a_token():
    settings = Settings(tokens=(TOKEN,), origins=(FRIEND,))
    evil = {**ASKS, "Origin": "https://evil.example"}
    friends, evils = answers(
        settings, ("OPTIONS", "/v1/convert", ASKS, None), ("OPTIONS", "/v1/convert", evil, None)
    )
    assert friends.status_code == 200
    assert friends.headers["Access-Control-Allow-Origin"] == FRIEND
    assert "POST" in friends.headers["Access-Control-Allow-Methods"]
    assert friends.headers["Access-Control-Allow-Headers"] == ASKS["Access-Control-Request-Headers"]
    assert evils.status_code == 400
    assert "Access-Control-Allow-Origin" not in evils.headers


def test_a_page_of_a_public_address_may_use_a_service_in_a_private_network():
    asks = {**ASKS, "Access-Control-Request-Private-Network": "true"}
    evil = {**asks, "Origin": "https://evil.example"}
    friends, others, evils = answers(
        Settings(tokens=(TOKEN,), origins=(FRIEND,)),
        *(("OPTIONS", "/v1/convert", headers, None) for headers in (asks, ASKS, evil)),
    )
    name = "Access-Control-Allow-Private-Network"
    assert (friends.status_code, friends.headers[name]) == (200, "true")
    assert "Access-Control-Request-Private-Network" in friends.headers["Vary"]
    assert (others.status_code, name in others.headers) == (200, False)
    assert evils.status_code == 400
    assert "Access-Control-Allow-Origin" not in evils.headers


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/docs"),
        ("GET", "/v1/models"),
        ("GET", "/page/main.js"),
        ("POST", "/v1/comparison/report"),  # in a tab of its own, after the token was replaced
    ],
)
def test_the_form_for_the_token_is_sent_to_the_same_address_from_every_page(method, path):
    (answer,) = answers(Settings(tokens=(TOKEN,)), (method, path, {"Accept": "text/html"}, None))
    assert answer.status_code == 401
    action = re.search('action="([^"]+)"', answer.text)[1]
    assert urljoin(f"http://here:8000/prefix{path}", action) == "http://here:8000/prefix/session"


def test_pages_of_other_origins_read_all_answers():
    settings = Settings(tokens=(TOKEN,), origins=(FRIEND,), rate=4)
    headers = {"Origin": FRIEND, **BEARER}
    found = answers(
        settings,
        ("GET", "/v1/models", {"Origin": FRIEND}, None),
        ("GET", "/v1/models", headers, None),
        ("GET", "/broken", headers, None),
        ("POST", "/v1/convert", headers, b"x" * 1_000_001),
        ("POST", "/v1/convert", headers, b"{"),
        ("GET", "/v1/models", headers, None),
    )
    assert [answer.status_code for answer in found] == [401, 200, 500, 413, 400, 429]
    assert {answer.headers["Access-Control-Allow-Origin"] for answer in found} == {FRIEND}
    exposed = {answer.headers["Access-Control-Expose-Headers"] for answer in found}
    assert exposed == {"X-Request-Id, Retry-After"}
    evil = {"Origin": "https://evil.example", **BEARER}
    [refused] = answers(settings, ("GET", "/v1/models", evil, None))
    assert refused.status_code == 403
    assert "Access-Control-Allow-Origin" not in refused.headers


def test_probes_and_metrics_count_for_no_limit():
    """A healthy service isn't restarted because its clients send too much, and nothing else passes."""
    settings = Settings(tokens=(TOKEN,), rate=1, connections=1)
    probes = [("GET", path, {}, None) for path in ("/healthz", "/readyz", "/metrics")] * 2
    models = ("GET", "/v1/models", BEARER, None)
    *found, first, second = answers(settings, *probes, models, models)
    assert [answer.status_code for answer in found] == [200, 503, 200] * 2  # no models are loaded
    assert [first.status_code, second.status_code] == [200, 429]


def test_without_the_option_no_page_is_let_in():
    found = answers(
        Settings(), ("OPTIONS", "/v1/convert", ASKS, None), ("GET", "/v1/models", {"Origin": FRIEND}, None)
    )
    assert [answer.status_code for answer in found] == [403, 403]
    assert not any(name.startswith("access-control") for answer in found for name in answer.headers)


@pytest.mark.parametrize(
    ("origin", "right"),
    [
        ("https://friend.example/", "https://friend.example"),
        ("https://friend.example:443", "https://friend.example"),
        ("HTTPS://Friend.example:8443/page?x#y", "https://friend.example:8443"),
        ("http://[::1]:3000/", "http://[::1]:3000"),
    ],
)
def test_an_origin_that_never_matches_is_refused(origin, right):
    with pytest.raises(ConfigError, match="matches no page") as caught:
        Settings(origins=(FRIEND, origin))
    assert str(caught.value.hint) == f"write --origin {right}"
    assert Settings(origins=(right,)).origins == (right,)


@pytest.mark.parametrize(
    "origin", ["", "*", "null", "friend.example", "friend.example:80", "http://a:b", "/"]
)
def test_what_is_no_origin_is_refused(origin):
    with pytest.raises(ConfigError, match="not the origin of a page"):
        Settings(origins=(origin,))


@contextmanager
def served_to_localhost() -> Iterator[int]:
    """The port of a service without models on 127.0.0.1, which pages of http://localhost may use."""
    with listening_socket(Settings(port=0)) as listener:
        port = listener.getsockname()[1]
        app = create_app(Settings(tokens=(TOKEN,), origins=(f"http://localhost:{port}",)))
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            wait_until(lambda: server.started, "the server")
            yield port
        finally:
            server.should_exit = True
            thread.join()


def test_a_page_of_another_origin_in_a_browser(chromium):
    script = """async ([address, headers]) => {
        const body = new Blob(["{"], {type: "application/json"});
        const answer = await fetch(address, {method: "POST", headers, body});
        const {error} = await answer.json();
        return [answer.status, error.type, answer.headers.get("X-Request-Id").length];
    }"""
    with served_to_localhost() as port:
        shown = open_page(chromium, f"http://localhost:{port}/healthz")
        address = f"http://127.0.0.1:{port}/v1/convert"
        assert shown.page.evaluate(script, [address, {}]) == [401, "authentication_error", 12]
        assert shown.page.evaluate(script, [address, BEARER]) == [400, "invalid_request_error", 12]
        shown.close()
