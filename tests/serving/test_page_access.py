"""Tests of the page by keyboard, on a phone, in both languages, light and dark, and after errors."""

import json

import pytest
from playwright.sync_api import WebSocketRoute, expect

from tests.support.chromium import PATIENCE, open_page
from tests.support.recordings import FOLDER, RECORDINGS
from tests.support.service import TOKEN, running_service, wait_until
from tests.support.talking import settled, violations, visit, wait_for_state

SPOKEN = "如果无法控制"  # according to the recording's corpus
expect.set_options(timeout=1000 * PATIENCE)


def test_everything_works_with_the_keyboard_alone(open_service, chromium):
    shown, _ = visit(chromium, open_service.url)
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
    # In a recording with uncertain characters, another reading is chosen.
    # The dialog of the system is not opened: on a busy machine Chromium has opened none.
    file = 'document.getElementById("file")'
    shown.run(f"{file}.addEventListener('click', event => {{event.preventDefault(); window.asked = true}})")
    tab_to("#choose")
    press("Enter")
    shown.page.wait_for_function("window.asked")
    shown.page.set_input_files("#file", FOLDER / "common_voice_18735239.ogg")
    expect(shown.page.locator("li.final").nth(1)).to_be_visible()
    wait_for_state(shown, "idle")
    assert focused("id") == "record", "the button that was disabled has passed its focus on"
    tab_to("li:last-child .whole")
    press("Enter")
    assert len(set(shown.page.locator("#popover .option .hanzi").all_inner_texts())) > 1
    press("Tab")
    chosen = shown.run("document.activeElement.querySelector('.hanzi').textContent")
    press("Enter")
    expect(shown.page.locator("#popover")).to_be_hidden()
    assert focused("className") == "whole"
    line = shown.run("document.querySelector('li:last-child .line').ariaLabel")
    assert line.replace("，", "") == chosen
    assert shown.page.locator("li:last-child .cell.chosen").count() > 0
    tab_to("#reference")
    shown.page.keyboard.type(SPOKEN)
    tab_to("#compare")
    press("Enter")
    shown.page.wait_for_selector("#comparison:not([hidden])")
    assert focused("id") == "comparison-title"
    settled(shown, open_service)
    shown.close()


def test_the_page_is_accessible(open_service, chromium, nightly):
    """axe finds nothing in any state, in both languages, light and dark, on a phone and a laptop.

    Without --nightly English is light and Chinese dark.
    """
    shown, _ = visit(chromium, open_service.url, 390)

    def check(state: str) -> None:
        for dark in (False, True):
            if (shown.run("document.getElementById('theme').ariaPressed") == "true") != dark:
                shown.page.click("#theme")
            for language in ("en", "zh-Hans") if nightly else ("zh-Hans" if dark else "en",):
                if shown.run("document.documentElement.lang") != language:
                    shown.page.click("#language")
                if state == "popover":
                    shown.page.locator("button.cell").first.click()
                assert violations(shown) == [], f"{state}, {language}, {'dark' if dark else 'light'}"
                assert shown.run("document.documentElement.scrollWidth") <= 390
                if state == "popover":
                    shown.page.keyboard.press("Escape")
        shown.page.set_viewport_size({"width": 1280, "height": 900})
        assert violations(shown) == [], f"{state}, 1280 px"
        shown.page.set_viewport_size({"width": 390, "height": 900})

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
    report = f"{open_service.url}/v1/comparison/report"
    with shown.page.context.expect_event("response", lambda answer: answer.url == report) as opened:
        shown.page.click("#comparison form button")
    assert opened.value.status == 200
    settled(shown, open_service)
    shown.close()


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
@pytest.mark.parametrize("width", [320, 360, 412])
def test_the_status_is_readable_on_a_phone(open_service, chromium, width, locale):
    shown, _ = visit(chromium, open_service.url, width, locale=locale)
    fits = """async () => {
        const [status, clock, button] = ["status", "clock", "choose"].map(id => document.getElementById(id));
        const {text} = await import("/page/texts.js");
        return ["idle", "connecting", "listening", "reading", "finishing", "disconnected"].filter(state => {
            status.textContent = text(state);
            const of = button.getBoundingClientRect();
            return [status, clock].some(part => {
                const range = document.createRange();
                range.selectNodeContents(part);
                const drawn = range.getBoundingClientRect(), box = part.getBoundingClientRect();
                const isCovered = drawn.right > of.left && drawn.bottom > of.top;
                return isCovered || drawn.right > box.right || drawn.right > innerWidth;
            });
        });
    }"""
    assert shown.page.evaluate(fits) == [], "these states are cut off or covered"
    name = "打开录音" if locale == "zh-CN" else "Open a recording"
    expect(shown.page.get_by_role("button", name=name)).to_be_visible()
    assert shown.run("document.documentElement.scrollWidth") <= width
    shown.page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    above = "document.querySelector('main').lastElementChild.getBoundingClientRect().bottom"
    assert shown.run(f"{above} <= document.querySelector('.controls').getBoundingClientRect().top")
    shown.close()


def test_a_token_that_is_no_longer_accepted(service_with_token, chromium):
    """The page says so, whatever was tried, and keeps the transcript; signing in elsewhere is enough."""
    shown = open_page(chromium, service_with_token.url, locale="en-GB")
    shown.page.fill("#token", TOKEN)
    shown.page.keyboard.press("Enter")
    shown.page.wait_for_selector("body.loaded")
    shown.page.set_input_files("#file", RECORDINGS[0])
    shown.page.wait_for_selector("li.final")
    wait_for_state(shown, "idle")
    lines = shown.page.locator("li.final").count()
    context = shown.page.context
    valid = context.cookies()
    shown.page.fill("#reference", SPOKEN)
    for cookies in ([], [{**valid[0], "value": "a-token-that-was-replaced"}]):
        context.clear_cookies()
        context.add_cookies(cookies)
        for attempt in (
            lambda: shown.page.click("#record"),
            lambda: shown.page.set_input_files("#file", RECORDINGS[0]),
            lambda: shown.page.click("#compare"),
        ):
            attempt()
            problem = shown.page.locator("#problem .message")
            expect(problem).to_have_text("The server no longer accepts the token of this browser.")
            shown.page.click("#dismiss")
    assert shown.page.locator("li.final").count() == lines
    context.clear_cookies()
    context.add_cookies(valid)
    shown.page.set_input_files("#file", RECORDINGS[0])
    expect(shown.page.locator("li.final").nth(lines)).to_be_visible()
    shown.close()


def test_a_network_that_is_gone_is_noticed(open_service, chromium):
    """No connection is closed, but nothing arrives any more."""
    shown, _ = visit(chromium, open_service.url)
    gone = False

    def connect(page_side: WebSocketRoute) -> None:
        server = page_side.connect_to_server()

        def arrive(text: str) -> None:
            message = json.loads(text)
            if message["type"] == "ready":
                message["alive_seconds"] /= 2
            if not gone:
                page_side.send(json.dumps(message))

        server.on_message(arrive)
        page_side.on_message(lambda content: gone or server.send(content))

    shown.page.route_web_socket("**/v1/stream", connect)
    shown.page.click("#record")
    shown.page.wait_for_selector("li.final")
    final = shown.page.locator("li.final").inner_text()
    assert shown.run("document.body.dataset.state") == "listening"
    gone = True
    wait_for_state(shown, "disconnected")
    expect(shown.page.locator("#problem .message")).to_have_text("The connection was lost.")
    assert shown.page.locator("li.final").inner_text() == final, "what was recognised is kept"
    shown.close()


def test_an_unfinished_line_goes_with_the_connection(open_service, chromium):
    """The server will not come back to it."""
    shown, _ = visit(chromium, open_service.url)
    unfinished = []

    def connect(page_side: WebSocketRoute) -> None:
        server = page_side.connect_to_server()

        def arrive(text: str) -> None:
            message = json.loads(text)
            page_side.send(text)
            if message["type"] == "partial" and message["syllables"] and not unfinished:
                unfinished.append(message)
                page_side.close()
                server.close()

        server.on_message(arrive)

    shown.page.route_web_socket("**/v1/stream", connect)
    shown.page.click("#record")
    wait_for_state(shown, "disconnected")
    assert unfinished and shown.page.locator("#utterances li").count() == 0
    shown.close()


_SLOW_PERMISSION = """
const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
window.tracks = [];
navigator.mediaDevices.getUserMedia = async constraints => {
  await new Promise(done => window.permit = done);
  const stream = await ask(constraints);
  window.tracks.push(...stream.getTracks());
  return stream;
};
const decode = AudioContext.prototype.decodeAudioData;
AudioContext.prototype.decodeAudioData = async function(data) {
  await new Promise(done => window.decoded = done);
  return decode.call(this, data);
};
"""


def test_a_recording_that_was_cancelled_does_not_begin_later(open_service, chromium):
    """While the browser asks for permission, or decodes a file."""
    shown, conversation = visit(chromium, open_service.url)
    shown.page.add_init_script(_SLOW_PERMISSION)
    shown.page.reload()
    shown.page.wait_for_selector("body.loaded")
    shown.page.click("#record")
    wait_for_state(shown, "connecting")
    wait_until(lambda: shown.run("window.permit !== undefined"), "the question for permission")
    shown.page.click("#record")
    wait_for_state(shown, "idle")
    shown.run("window.permit()")
    ended = "tracks.length > 0 && tracks.every(track => track.readyState === 'ended')"
    wait_until(lambda: shown.run(ended), "the end of the microphone")
    shown.page.set_input_files("#file", RECORDINGS[0])
    wait_for_state(shown, "reading")
    wait_until(lambda: shown.run("window.decoded !== undefined"), "the decoding")
    shown.page.click("#record")
    wait_for_state(shown, "idle")
    shown.run("window.decoded()")
    shown.page.wait_for_timeout(500)
    assert conversation.sent == [] and len(conversation.samples) == 0
    assert shown.run("document.body.dataset.state") == "idle"
    shown.close()


def test_copying_that_is_not_allowed_is_explained(open_service, chromium):
    shown, _ = visit(chromium, open_service.url)
    shown.page.set_input_files("#file", RECORDINGS[0])
    shown.page.wait_for_selector("li.final")
    wait_for_state(shown, "idle")
    shown.run("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    shown.page.click("#copy")
    expect(shown.page.locator("#problem .message")).to_have_text("The browser does not allow copying.")
    assert shown.errors == []
    shown.close()


def test_errors_are_explained(chromium):
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
        expect(shown.page.locator("#problem .message")).to_have_text("无法连接服务器。")
        assert violations(shown) == []
    shown.page.click("#record")
    expect(shown.page.locator("#problem .message")).to_have_text("无法连接服务器。")
    wait_for_state(shown, "idle")
    shown.close()
