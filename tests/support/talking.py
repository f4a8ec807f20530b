"""A browser whose microphone plays a recording, and the messages between the page and the service."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, WebSocket

import transcribe
from tests.support.chromium import WatchedPage, open_chromium, open_page
from tests.support.service import Service
from utils.audio.reading import read_audio

RATE = 16_000
SILENCE_SECONDS = 1.0  # before and after the recording


@contextmanager
def chromium_with_microphone(recording: Path, folder: Path) -> Iterator[Browser]:
    """A browser whose microphone plays a recording once, each time a page opens it."""
    silence = np.zeros(round(SILENCE_SECONDS * RATE))
    path = folder / "microphone.wav"
    soundfile.write(path, np.concatenate([silence, read_audio(recording), silence]), RATE, subtype="PCM_16")
    flags = ("--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream")
    with open_chromium(*flags, f"--use-file-for-fake-audio-capture={path}%noloop") as browser:
        yield browser


class Conversation:
    """The messages between a page and the service, in order.

    Attributes:
        samples: (n,) int16, the sound of a microphone sent by the page.
        messages: messages of the service.
    """

    def __init__(self, shown: WatchedPage):
        self._sound: list[bytes] = []
        self.sent: list[dict[str, Any]] = []
        self.messages: list[dict[str, Any]] = []
        shown.page.on("websocket", self._listen)

    @property
    def samples(self) -> np.ndarray:
        return np.frombuffer(self.data, "<i2")

    @property
    def data(self) -> bytes:
        """All bytes sent by the page."""
        return b"".join(self._sound)

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The messages of a type."""
        return [message for message in self.messages if message["type"] == kind]

    def _listen(self, socket: WebSocket) -> None:
        socket.on("framesent", self._note_sent)
        socket.on("framereceived", lambda text: self.messages.append(json.loads(text)))

    def _note_sent(self, content: str | bytes) -> None:
        if isinstance(content, bytes):
            self._sound.append(content)
        else:
            self.sent.append(json.loads(content))


def transcribed_live(samples: np.ndarray, form: str = "text", *options: str) -> str:
    """The output of ``transcribe.py --stream`` for samples (n,) int16 at 16 kHz."""
    arguments, shown = ["-", "--rate", str(RATE), "--stream", "--format", form, *options], io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(shown):
        patch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(samples.tobytes())))
        assert transcribe.main(arguments) == 0
    return shown.getvalue()


def visit(
    browser: Browser, address: str, width: int = 1280, **context: Any
) -> tuple[WatchedPage, Conversation]:
    """The page in a window of this width, and its messages with the service."""
    shown = open_page(browser, "", width, **{"locale": "en-GB", **context})
    conversation = Conversation(shown)
    shown.page.goto(address)
    shown.page.wait_for_selector("body.loaded")
    return shown, conversation


def wait_for_state(shown: WatchedPage, state: str) -> None:
    """Wait until the page is ``idle``, ``listening`` …"""
    shown.page.wait_for_selector(f"body[data-state={state}]")


def speak(shown: WatchedPage) -> None:
    """Start, wait until the utterance has ended, stop."""
    shown.page.click("#record")
    wait_for_state(shown, "listening")
    shown.page.wait_for_selector("li.final")
    shown.page.click("#record")
    wait_for_state(shown, "idle")


def settled(shown: WatchedPage, service: Service) -> None:
    """Check that the console has no error and that all requests went to the service."""
    assert shown.errors == []
    host = service.url.partition("://")[2]
    assert {request.split("/")[2] for request in shown.requests} == {host}


def violations(shown: WatchedPage) -> list[str]:
    """The violations that axe finds in the present page.

    Transitions are switched off, because a browser that paints no frame never ends a transition.
    """
    shown.page.emulate_media(reduced_motion="reduce")
    found = Axe().run(shown.page).response["violations"]
    return [f"{each['id']}: {node['html']} {node['any'][:1]}" for each in found for node in each["nodes"]]
