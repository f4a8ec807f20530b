"""Runs each example client by the command in its first lines, against a service with a token."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.support.recordings import RECORDINGS
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


@pytest.mark.skipif(not shutil.which("curl"), reason="no curl")
def test_curl(guarded_service: Service):
    shown = output("sh", "examples/transcribe_with_curl.sh", str(RECORDINGS[-1]), guarded_service.url)
    assert shown.count(TEXT) >= 6
    assert '"kong4"' in shown
    assert "data: [DONE]" in shown
    assert "今天天气很好" in shown
