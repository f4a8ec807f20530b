"""The page in a browser whose microphone is a recording: it shows what is said; everybody can use it."""

import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect
from pypinyin.contrib.tone_convert import to_tone

from tests.support.chromium import PATIENCE, WatchedPage, open_page
from tests.support.service import RECORDINGS, Service, running_service
from tests.support.talking import RATE, Conversation, chromium_with_microphone, transcribed_live
from utils.run_folder.run import PRETRAINED_SPEECH

TOKEN = "a-token-of-this-test"
SPOKEN = "如果无法控制"  # in the recording, says its corpus
expect.set_options(timeout=1000 * PATIENCE)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with running_service("--workers", "1") as service:
        yield service


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    recording = next(path for path in RECORDINGS if "18776500" in path.name)
    with chromium_with_microphone(recording, tmp_path_factory.mktemp("sound")) as browser:
        yield browser


def visit(
    browser: Browser, address: str, width: int = 1280, **context: object
) -> tuple[WatchedPage, Conversation]:
    shown = open_page(browser, "", width, **{"locale": "en-GB", **context})
    heard = Conversation(shown)
    shown.page.goto(address)
    shown.page.wait_for_selector("body.loaded")
    return shown, heard


def wait_for_state(shown: WatchedPage, state: str) -> None:
    shown.page.wait_for_selector(f"body[data-state={state}]")


def speak(shown: WatchedPage) -> None:
    """Start, wait until the utterance has ended, stop."""
    shown.page.click("#record")
    wait_for_state(shown, "listening")
    shown.page.wait_for_selector("li.final")
    shown.page.click("#record")
    wait_for_state(shown, "idle")


def settled(shown: WatchedPage, service: Service) -> None:
    """No error on the console, and no request to anywhere but the service."""
    assert shown.errors == []
    host = service.url.partition("://")[2]
    assert {request.split("/")[2] for request in shown.requests} == {host}


def violations(shown: WatchedPage) -> list[str]:
    """What axe finds in the page as it is now."""
    shown.run("Promise.all(document.getAnimations().map(each => each.finished.catch(() => null)))")
    found = Axe().run(shown.page).response["violations"]
    return [f"{each['id']}: {node['html']} {node['any'][:1]}" for each in found for node in each["nodes"]]


def test_syllables_appear_while_one_speaks_and_hanzi_at_the_end(service, chromium):
    shown, heard = visit(chromium, service.url)
    shown.run(
        """(() => {
        window.seen = [];
        const count = () => {
            const line = document.querySelector("li"), cells = document.querySelectorAll(".cell").length;
            if (line) window.seen.push([line.className, cells]);
        };
        const list = document.getElementById("utterances");
        new MutationObserver(count).observe(list, {childList: true, subtree: true});
    })()"""
    )
    speak(shown)
    seen = shown.run("window.seen")
    partials = {cells for kind, cells in seen if kind == "partial"}
    assert len(partials) >= 2, "syllables come one after the other"
    assert max(partials) <= seen[-1][1] + 2 and seen[-1][0] == "final"
    assert heard.sent[0] == {
        "type": "start", "encoding": "pcm_s16le", "rate": RATE, "words": "", "phrases": ""
    }  # fmt: skip
    assert heard.sent[-1] == {"type": "end"} and heard.messages[-1]["type"] == "end"

    lines = shown.run("[...document.querySelectorAll('li.final .line')].map(line => line.ariaLabel)")
    assert "".join(f"{line}\n" for line in lines) == transcribed_live(heard.samples)
    assert SPOKEN[:4] in lines[0]
    marks = shown.run(
        "[...document.querySelectorAll('#utterances rt')].map(mark => mark.textContent).slice(0, 4)"
    )
    assert marks == ["rú", "guǒ", "wú", "fǎ"]
    assert shown.run("document.getElementById('spoken').textContent") == lines[-1]
    columns = shown.run("document.querySelector('.strip').scrollWidth")
    assert columns >= 120 * (len(heard.samples) / RATE - 0.5), "the spectrogram has all sound"

    with shown.page.expect_download() as download:
        shown.page.click("[data-export=txt]")
    assert Path(download.value.path()).read_text(encoding="utf-8") == "".join(f"{line}\n" for line in lines)
    assert download.value.suggested_filename.endswith(".txt")
    with shown.page.expect_download() as download:
        shown.page.click("[data-export=srt]")
    assert Path(download.value.path()).read_text(encoding="utf-8") == transcribed_live(heard.samples, "srt")
    with shown.page.expect_download() as download:
        shown.page.click("[data-export=json]")
    saved = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert [segment["hanzi"] for segment in saved["segments"]] == lines
    settled(shown, service)
    shown.close()


def test_tone_marks_of_all_syllables(service, chromium):
    shown, _ = visit(chromium, service.url)
    tokens = (PRETRAINED_SPEECH / "vocabulary" / "acoustic.txt").read_text(encoding="utf-8").split()
    # pypinyin has no marks for syllables without a vowel (m2, hng1).
    syllables = [token for token in tokens if token[-1].isdigit() and set(token) & set("aeiouv")]
    marked = shown.page.evaluate(
        "async names => names.map((await import('/page/pinyin.js')).withToneMark)", syllables
    )
    expected = [unicodedata.normalize("NFC", to_tone(name.replace("v", "ü"))) for name in syllables]
    assert [unicodedata.normalize("NFC", mark) for mark in marked] == expected and len(expected) > 1000
    settled(shown, service)
    shown.close()


def test_a_file_words_and_phrases(service, chromium):
    shown, heard = visit(chromium, service.url, locale="zh-CN")
    assert shown.run("document.documentElement.lang") == "zh-Hans"
    shown.page.fill("#phrases", "打开窗户\n如果无法控制")
    shown.page.set_input_files("#file", next(path for path in RECORDINGS if "18776500" in path.name))
    shown.page.wait_for_selector("li.final")
    wait_for_state(shown, "idle")
    assert heard.sent[0]["phrases"] == "打开窗户\n如果无法控制"
    assert heard.of("final")[0]["phrase"]["accepted"]
    assert shown.run("document.querySelector('li.final .line').ariaLabel") == SPOKEN

    shown.page.fill("#phrases", "")
    shown.page.fill("#words", "无法")
    shown.page.set_input_files("#file", RECORDINGS[0])
    expect(shown.page.locator("li.final").nth(1)).to_be_visible()
    wait_for_state(shown, "idle")
    assert heard.sent[-2]["words"] == "无法"
    times = shown.run("[...document.querySelectorAll('button.whole')].map(each => each.textContent)")
    assert times == sorted(times), "the second recording goes on where the first one ended"

    shown.page.set_input_files("#file", {"name": "a.wav", "mimeType": "audio/wav", "buffer": b"no sound"})
    expect(shown.page.locator("#problem .what")).to_have_text("浏览器无法读取此文件。")
    assert shown.page.locator("li.final").count() > 1, "what was recognised is kept"
    settled(shown, service)
    shown.close()


def test_everything_works_with_the_keyboard_alone(service, chromium):
    shown, _ = visit(chromium, service.url)
    press = shown.page.keyboard.press

    def focused(attribute: str) -> str:
        return shown.run(f"document.activeElement.{attribute}")

    def tab_to(selector: str) -> None:
        for _ in range(40):
            if shown.run(f"document.activeElement.matches({json.dumps(selector)})"):
                assert shown.run("getComputedStyle(document.activeElement).outlineStyle") != "none"
                return
            press("Tab")
        raise AssertionError(f"Tab does not reach {selector}")

    press("Tab")
    assert focused("className") == "skip"
    tab_to("#record")
    press("Enter")
    wait_for_state(shown, "listening")
    shown.page.wait_for_selector("li.final")
    press("Space")
    wait_for_state(shown, "idle")
    tab_to("button.cell")
    press("ArrowRight")
    second = focused("ariaLabel")
    assert second.startswith("果 guǒ")
    press("Enter")
    expect(shown.page.locator("#popover")).to_be_visible()
    assert shown.run("document.getElementById('popover').contains(document.activeElement)")
    press("Escape")
    expect(shown.page.locator("#popover")).to_be_hidden()
    assert focused("ariaLabel") == second, "the focus is back where it was"
    # Of a recording with doubtful characters, another reading is chosen.
    shown.page.set_input_files("#file", next(path for path in RECORDINGS if "18735239" in path.name))
    expect(shown.page.locator("li.final").nth(1)).to_be_visible()
    wait_for_state(shown, "idle")
    tab_to("li:last-child .whole")
    press("Enter")
    assert len(set(shown.page.locator("#popover .option .hanzi").all_inner_texts())) > 1
    press("Tab")
    chosen = shown.run("document.activeElement.querySelector('.hanzi').textContent")
    press("Enter")
    expect(shown.page.locator("#popover")).to_be_hidden()
    assert focused("className") == "whole"
    assert shown.run("document.querySelector('li:last-child .line').ariaLabel") == chosen
    assert shown.page.locator("li:last-child .cell.chosen").count() > 0
    tab_to("#reference")
    shown.page.keyboard.type(SPOKEN)
    tab_to("#compare")
    press("Enter")
    shown.page.wait_for_selector("#comparison:not([hidden])")
    assert focused("id") == "comparison-title"
    settled(shown, service)
    shown.close()


def test_nobody_is_kept_out(service, chromium):
    """axe finds nothing in any state, in both languages, on light and on dark ground, on a phone."""
    shown, _ = visit(chromium, service.url, 390)

    def check(state: str) -> None:
        for dark in (False, True):
            if (shown.run("document.getElementById('theme').ariaPressed") == "true") != dark:
                shown.page.click("#theme")
            for language in ("en", "zh-Hans"):
                if shown.run("document.documentElement.lang") != language:
                    shown.page.click("#language")
                if state == "popover":
                    shown.page.locator("button.cell").first.click()
                assert violations(shown) == [], f"{state}, {language}, {'dark' if dark else 'light'}"
                assert shown.run("document.documentElement.scrollWidth") <= 390
                if state == "popover":
                    shown.page.keyboard.press("Escape")

    check("idle")
    shown.page.click("#record")
    wait_for_state(shown, "listening")
    shown.page.wait_for_selector("li.final")
    check("listening")
    shown.page.click("#record")
    wait_for_state(shown, "idle")
    for summary in shown.page.locator(".settings summary").all():
        summary.click()
    check("results")
    check("popover")
    shown.page.fill("#reference", "如果吴发控制了")
    shown.page.click("#compare")
    shown.page.wait_for_selector("#comparison .wrong")
    check("errors")
    report = f"{service.url}/v1/comparison/report"
    with shown.page.context.expect_event("response", lambda answer: answer.url == report) as opened:
        shown.page.click("#comparison form button")
    assert opened.value.status == 200
    settled(shown, service)
    shown.close()


def test_what_goes_wrong_is_explained(chromium, tmp_path):
    with running_service("--workers", "1", SPEECH_TOKENS=TOKEN) as service:
        shown = open_page(chromium, service.url, locale="zh-CN")
        assert violations(shown) == []
        shown.page.fill("#token", "wrong")
        shown.page.keyboard.press("Enter")
        expect(shown.page.locator("#wrong")).to_have_text("令牌无效。")
        shown.page.fill("#token", TOKEN)
        shown.page.keyboard.press("Enter")
        shown.page.wait_for_selector("body.loaded")
        shown.page.click("#record")
        wait_for_state(shown, "listening")
        shown.page.wait_for_selector("li")
        service.process.kill()
        wait_for_state(shown, "disconnected")
        expect(shown.page.locator("#problem .what")).to_have_text("无法连接服务器。")
        assert violations(shown) == []
    shown.page.click("#record")
    expect(shown.page.locator("#problem .what")).to_have_text("无法连接服务器。")
    wait_for_state(shown, "idle")
    shown.close()
