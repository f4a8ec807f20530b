"""Tests of the page in a browser whose microphone plays a recording: it shows and saves the transcript."""

import json
import unicodedata
from pathlib import Path

import numpy as np
from playwright.sync_api import expect
from pypinyin.contrib.tone_convert import to_tone

from tests.support.chromium import PATIENCE
from tests.support.recordings import RECORDING, RECORDINGS
from tests.support.talking import RATE, settled, speak, transcribed_live, visit, wait_for_state
from utils.hypotheses.recognition import Alternative, Recognition
from utils.hypotheses.transcript_formats import FORMATS
from utils.run_folder.run import PRETRAINED_SPEECH

SPOKEN = "如果无法控制"  # according to the recording's corpus
expect.set_options(timeout=1000 * PATIENCE)


def test_syllables_appear_during_speech_and_hanzi_at_the_end(open_service, chromium):
    shown, conversation = visit(chromium, open_service.url)
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
    assert len(partials) >= 2, "syllables appear one after the other"
    assert max(partials) <= seen[-1][1] + 2 and seen[-1][0] == "final"
    assert conversation.sent[0] == {
        "type": "start", "encoding": "pcm_s16le", "rate": RATE, "words": "", "phrases": ""
    }  # fmt: skip
    assert conversation.sent[-1] == {"type": "end"} and conversation.messages[-1]["type"] == "end"

    lines = shown.run("[...document.querySelectorAll('li.final .line')].map(line => line.ariaLabel)")
    assert "".join(f"{line}\n" for line in lines) == transcribed_live(conversation.samples)
    assert SPOKEN[:4] in lines[0]
    marks = shown.run(
        "[...document.querySelectorAll('#utterances rt')].map(mark => mark.textContent).slice(0, 4)"
    )
    assert marks == ["rú", "guǒ", "wú", "fǎ"]
    assert shown.run("document.getElementById('spoken').textContent") == lines[-1]
    columns = shown.run("document.querySelector('.strip').scrollWidth")
    assert columns >= 120 * (len(conversation.samples) / RATE - 0.5), "the spectrogram has all sound"

    with shown.page.expect_download() as download:
        shown.page.click("[data-export=txt]")
    assert Path(download.value.path()).read_text(encoding="utf-8") == "".join(f"{line}\n" for line in lines)
    assert download.value.suggested_filename.endswith(".txt")
    with shown.page.expect_download() as download:
        shown.page.click("[data-export=srt]")
    assert Path(download.value.path()).read_text(encoding="utf-8") == transcribed_live(
        conversation.samples, "srt"
    )
    with shown.page.expect_download() as download:
        shown.page.click("[data-export=json]")
    saved = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert [segment["hanzi"] for segment in saved["segments"]] == lines
    settled(shown, open_service)
    shown.close()


def test_tone_marks_of_all_syllables(open_service, chromium):
    shown, _ = visit(chromium, open_service.url)
    tokens = (PRETRAINED_SPEECH / "vocabulary" / "acoustic.txt").read_text(encoding="utf-8").split()
    # pypinyin has no marks for syllables without a vowel (m2, hng1).
    syllables = [token for token in tokens if token[-1].isdigit() and set(token) & set("aeiouv")]
    marked = shown.page.evaluate(
        "async names => names.map((await import('/page/pinyin.js')).withToneMark)", syllables
    )
    expected = [unicodedata.normalize("NFC", to_tone(name.replace("v", "ü"))) for name in syllables]
    assert [unicodedata.normalize("NFC", mark) for mark in marked] == expected and len(expected) > 1000
    settled(shown, open_service)
    shown.close()


def test_long_speech_is_cut_into_the_subtitles_of_transcribe(open_service, chromium):
    rng = np.random.default_rng(0)
    utterances, events = [], []
    for _ in range(40):
        gaps = rng.choice([0, 0, 0, 0, 0, 0.1, 0.3, 0.7], size=rng.integers(1, 100))
        starts = np.round(np.cumsum(gaps + 0.25), 3).tolist()
        times = [(start, round(start + 0.25, 3)) for start in starts]
        texts = rng.choice(list("妈妈妈x1"), size=len(times)).tolist()
        for at in range(0, len(times) - 1, 7):  # words with Latin letters have several syllables
            texts[at : at + 2] = ["WiFi", ""]
        hanzi = "".join(texts)
        word_starts = (0, *(np.flatnonzero(rng.integers(0, 2, len(times) - 1)) + 1).tolist())
        best = Alternative(("ma1",) * len(times), hanzi, 0.0, texts=tuple(texts))
        events.append(Recognition(0.0, times[-1][1], tuple(times), (best,), word_starts=word_starts))
        syllables = [{"pinyin": "ma1", "start": start, "end": end} for start, end in times]
        utterances.append(
            {"syllables": syllables, "hanzi": hanzi, "texts": texts, "word_starts": word_starts}
        )
    shown, _ = visit(chromium, open_service.url)
    found = shown.page.evaluate(
        """async given => {
            const {Utterance} = await import('/page/results.js');
            const given_each = (each, i) => new Utterance(i, each, 0);
            return (await import("/page/save.js")).asSubtitles(given.map(given_each));
        }""",
        utterances,
    )
    assert found == "".join(FORMATS["srt"].write("", events))
    settled(shown, open_service)
    shown.close()


def test_a_file_with_user_words_and_phrases(open_service, chromium):
    shown, conversation = visit(chromium, open_service.url, locale="zh-CN")
    assert shown.run("document.documentElement.lang") == "zh-Hans"
    shown.page.fill("#phrases", "打开窗户\n如果无法控制")
    shown.page.set_input_files("#file", RECORDING)
    shown.page.wait_for_selector("li.final")
    wait_for_state(shown, "idle")
    assert conversation.sent[0]["phrases"] == "打开窗户\n如果无法控制"
    assert conversation.sent[0]["encoding"] == "file" and conversation.data == RECORDING.read_bytes()
    assert conversation.of("final")[0]["phrase"]["accepted"]
    assert shown.run("document.querySelector('li.final .line').ariaLabel") == SPOKEN

    shown.page.fill("#phrases", "")
    shown.page.fill("#words", "无法")
    shown.page.set_input_files("#file", RECORDINGS[0])
    expect(shown.page.locator("li.final").nth(1)).to_be_visible()
    wait_for_state(shown, "idle")
    assert conversation.sent[-2]["words"] == "无法"
    times = shown.run("[...document.querySelectorAll('button.whole')].map(each => each.textContent)")
    assert times == sorted(times), "the second recording continues the transcript of the first"

    shown.page.set_input_files("#file", {"name": "a.wav", "mimeType": "audio/wav", "buffer": b"no sound"})
    expect(shown.page.locator("#problem .message")).to_have_text("浏览器无法读取此文件。")
    assert shown.page.locator("li.final").count() > 1, "what was recognised is kept"
    settled(shown, open_service)
    shown.close()
