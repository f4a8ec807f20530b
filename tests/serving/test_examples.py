"""Runs each example client by the command in its first lines, against a service with a token."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from tests.support.recordings import RECORDINGS
from tests.support.scripts import load_script
from tests.support.service import PATIENCE, ROOT, TOKEN, Service

TEXT = "如果无法控制"


def output(*command: str) -> str:
    environment = {**os.environ, "OPENAI_API_KEY": TOKEN, "SPEECH_TOKEN": TOKEN}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


OTHER_FORMS = ("text", "srt", "vtt", "words")


@pytest.mark.parametrize(
    "form", ["json", "stream", *(pytest.param(form, marks=pytest.mark.nightly) for form in OTHER_FORMS)]
)
def test_openai(guarded_service: Service, form):
    chosen = ["--stream"] if form == "stream" else ["--format", form]
    example = "examples/transcribe_with_openai.py"
    shown = output(
        sys.executable, example, *chosen, "--url", f"{guarded_service.url}/v1", str(RECORDINGS[-1])
    )
    assert "".join(line.rpartition("\t")[2] for line in shown.split("\n")).endswith(TEXT)


@pytest.mark.parametrize("words", [["--stream"], ["--format", "words"], []])
def test_openai_gets_the_words_to_prefer(words, monkeypatch):
    requests = []

    def create(**request):
        requests.append(request)
        return SimpleNamespace(words=[], text="") if "stream" not in request else []

    transcriptions = SimpleNamespace(create=create)
    client = SimpleNamespace(audio=SimpleNamespace(transcriptions=transcriptions))
    monkeypatch.setattr("openai.OpenAI", lambda **_: client)
    load_script("examples/transcribe_with_openai.py").main([*words, "--words", "重庆路", "a.wav"])
    assert [request["prompt"] for request in requests] == ["重庆路"]


def test_the_live_client_sends_files_of_floats_and_the_mean_of_their_channels(tmp_path: Path):
    left = np.float32([0.5, -0.25, 1.5, -1.0, 0.25])
    soundfile.write(tmp_path / "sound.wav", np.stack([left, left], axis=1), 50, subtype="FLOAT")
    chunks = load_script("examples/live_client.py").chunks
    sent = np.frombuffer(b"".join(chunks(str(tmp_path / "sound.wav"), 50)), "<i2")
    assert sent.tolist() == [16384, -8192, 32767, -32768, 8192]
    soundfile.write(tmp_path / "right.wav", np.stack([0 * left, left], axis=1), 50, subtype="FLOAT")
    assert np.frombuffer(next(chunks(str(tmp_path / "right.wav"), 50)), "<i2")[0] == 8192


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("live_client.py none.wav", "'none.wav'"),
        ("live_client.py SOUND --url ws://127.0.0.1:9/v1/stream", "ws://127.0.0.1:9/v1/stream"),
        ("transcribe_with_openai.py none.wav", "'none.wav'"),
        (
            "transcribe_with_openai.py SOUND --url http://127.0.0.1:9/v1",
            "no service at http://127.0.0.1:9/v1",
        ),
        ("stream_keyword.py none none.wav", "none/bundle.json"),
        ("transcribe_with_curl.sh none.wav", "can't read none.wav"),
    ],
)
def test_a_missing_file_or_service_is_named_without_a_stack_trace(words, error):
    name, *arguments = words.replace("SOUND", str(RECORDINGS[-1])).split()
    program = "sh" if name.endswith(".sh") else sys.executable
    command = [program, f"examples/{name}", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 2 and done.stderr.startswith("error: ") and error in done.stderr
    assert done.stdout == "" and len(done.stderr.splitlines()) <= 3


@pytest.mark.skipif(not shutil.which("curl"), reason="no curl")
def test_curl(guarded_service: Service, tmp_path: Path):
    recording = shutil.copy(RECORDINGS[-1], tmp_path / f"talk, part 1; {RECORDINGS[-1].name}")
    shown = output("sh", "examples/transcribe_with_curl.sh", str(recording), guarded_service.url)
    assert shown.count(TEXT) >= 6
    assert '"kong4"' in shown
    assert "data: [DONE]" in shown
    assert "今天天气很好" in shown
