"""Tests of the page's files and of error counts against a reference, with a real service on loopback."""

import re

import httpx2
import pytest

from analysis.errors.kinds import KINDS
from serving.page.files import STATIC
from tests.support.service import PATIENCE, TOKEN, Service


@pytest.fixture(scope="module")
def service(open_service: Service) -> str:
    return open_service.url


def get(address: str, **headers: str) -> httpx2.Response:
    return httpx2.get(address, headers=headers, timeout=PATIENCE)


def post(address: str, **content: dict[str, str]) -> httpx2.Response:
    return httpx2.post(address, timeout=PATIENCE, **content)


def test_the_page_and_all_its_parts_are_served_with_a_strict_policy(service):
    for path in ["/", *(f"/page/{file.name}" for file in STATIC.iterdir())]:
        answer = get(service + path)
        assert answer.status_code == 200 and answer.content
        policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert {policy[name] for name in ("script-src", "style-src", "connect-src", "img-src")} == {"'self'"}
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "no-cache" in answer.headers["cache-control"]
        again = get(service + path, **{"If-None-Match": answer.headers["etag"]})
        assert again.status_code == 304 and "content-security-policy" in again.headers


def test_types_of_the_parts(service):
    types = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}
    for file in STATIC.iterdir():
        assert get(f"{service}/page/{file.name}").headers["content-type"].startswith(types[file.suffix])


def test_nothing_else_of_the_machine_is_served(service):
    for path in ("/page/", "/page/none.js", "/page/%2e%2e/app.py", "/page//etc/passwd"):
        answer = get(service + path)
        assert answer.status_code == 404 and str(STATIC.parent) not in answer.text


def test_the_parts_refer_to_each_other_only():
    names = {file.name for file in STATIC.iterdir()}
    for file in STATIC.iterdir():
        text = file.read_text(encoding="utf-8")
        assert set(re.findall(r'from "\./([^"]+)"', text)) <= names
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg|localhost)", text), file.name
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert {name.removeprefix("page/") for name in re.findall(r'(?:src|href)="(page/[^"]+)"', page)} <= names
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*src=)", page)


def test_every_text_is_there_in_both_languages():
    texts = (STATIC / "texts.js").read_text(encoding="utf-8")
    english, chinese = (
        set(re.findall(r"(?:^|[{,])\s*(\w+): [\"\[]", part, re.MULTILINE))
        for part in (texts[texts.index("  en: {") : texts.index("  zh: {")], texts[texts.index("  zh: {") :])
    )
    assert len(english) > 60 and english <= chinese
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert set(re.findall(r'data-(?:text|label)="(\w+)"', page)) <= english
    assert all(f'  "{kind.name}": ["' in texts for kind in KINDS)


def test_errors_of_a_transcript(service):
    texts = {
        "reference": "今天天气很好。",
        "pinyin": "jin1 tian1 tian1 qi4 hen2 hao3",
        "hanzi": "今天田气很好",
    }
    found = post(f"{service}/v1/comparison", json=texts).json()
    rates = {rate["key"]: (rate["errors"], rate["tokens"]) for rate in found["rates"]}
    assert rates == {"syllables": (1, 6), "toneless": (0, 6), "hanzi": (1, 6)}
    wrong = [slot for slot in found["alignment"] if slot["kind"]]
    assert [(slot["reference"], slot["hypothesis"]) for slot in wrong] == [("天", "田")]
    assert found["kinds"][wrong[0]["kind"]]["sign"]
    (tone,) = [slot for slot in found["alignment"] if slot["reference"] == "很"]
    assert (tone["reference_syllable"], tone["hypothesis_syllable"]) == ("hen3", "hen2")


@pytest.mark.parametrize(
    ("syllable", "errors"), [("huan2", 0), ("hai2", 0), ("huai2", 1)], ids=["spoken", "pypinyin", "wrong"]
)
def test_each_reading_of_a_correct_hanzi_is_correct(service, syllable, errors):
    """pypinyin reads 还 as hai2 in this sentence; the reference does not tell which reading was spoken."""
    texts = {"reference": "请还我笔。", "pinyin": f"qing3 {syllable} wo3 bi3", "hanzi": "请还我笔"}
    found = post(f"{service}/v1/comparison", json=texts).json()
    assert {rate["key"]: rate["errors"] for rate in found["rates"]} == {
        "syllables": errors,
        "toneless": errors,
        "hanzi": 0,
    }


@pytest.mark.parametrize("texts", [{"reference": "jīn tiān"}, {"reference": "今天", "hanzi": ""}])
def test_without_hanzi_the_syllables_are_compared(service, texts):
    found = post(f"{service}/v1/comparison", json={"pinyin": "jin1 tian2", "hanzi": "今田", **texts}).json()
    assert found["level"] == "syllables"
    assert [slot["kind"] for slot in found["alignment"]] == [None, "tone only"]


def test_the_report_of_a_transcript(service):
    texts = {"reference": "<b>今天</b>", "pinyin": "jin1 tian1", "hanzi": "金天"}
    answer = post(f"{service}/v1/comparison/report", data=texts)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert "sandbox allow-scripts" in answer.headers["content-security-policy"]
    assert "exact homophone" in answer.text and "<b>" not in answer.text.split("<main")[1]


def test_texts_that_cannot_be_compared(service):
    for texts, status in (
        ({"reference": " 。", "pinyin": "ni3"}, 400),
        ({"reference": "你" * 7000, "pinyin": "ni3"}, 400),
        ({"reference": "你" * 70_000, "pinyin": "ni3"}, None),
        ({"pinyin": "ni3"}, None),
    ):
        answer = post(f"{service}/v1/comparison", json=texts)
        assert answer.status_code == status if status else 400 <= answer.status_code < 500
        if status:
            assert answer.json()["error"]["hint"]


@pytest.fixture(scope="module")
def guarded(guarded_service: Service) -> str:
    return guarded_service.url


@pytest.mark.parametrize(
    ("languages", "text"), [("zh-CN,zh;q=0.9,en;q=0.8", "令牌"), ("de,en;q=0.5", "Token")]
)
def test_without_a_token_a_browser_gets_a_form(guarded, languages, text):
    for path in ("/", "/docs", "/v1/models"):
        answer = get(guarded + path, **{"Accept": "text/html", "Accept-Language": languages})
        assert answer.status_code == 401 and f">{text}<" in answer.text
        assert answer.headers["www-authenticate"] == "Bearer", "browsers would ask for a user and a password"
        assert "script-src" not in answer.headers["content-security-policy"]
    for file in STATIC.iterdir():
        assert get(f"{guarded}/page/{file.name}").status_code == 401
    assert get(guarded).json()["error"]["code"] == "invalid_api_key"


def test_the_form_gives_a_cookie_for_the_right_token_only(guarded):
    browser = httpx2.Client(timeout=PATIENCE)
    wrong = browser.post(f"{guarded}/session", data={"token": "<b>wrong</b>"})
    assert wrong.status_code == 401 and "not valid" in wrong.text and "<b>" not in wrong.text
    assert not browser.cookies
    foreign = {"Origin": "https://example.org"}
    assert browser.post(f"{guarded}/session", data={"token": TOKEN}, headers=foreign).status_code == 403
    right = browser.post(f"{guarded}/session", data={"token": TOKEN})
    assert right.status_code == 303
    cookie = right.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict"} <= set(cookie.split("; "))
    assert "path=" not in cookie.lower(), "behind a proxy it would be sent to other applications of the host"
    assert 'id="record"' in browser.get(guarded).text
    assert browser.get(f"{guarded}/v1/models").status_code == 200
