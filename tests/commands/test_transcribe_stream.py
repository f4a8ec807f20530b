"""Tests of transcribe.py --stream on a pipe of microphone samples, with the shipped models."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from recognition.voice_activity import FRAME_SECONDS
from tests.support.microphone import Microphone
from tests.support.recordings import RECORDING
from tests.support.scripts import ROOT, load_script
from utils.audio import microphone as microphone_module
from utils.audio.reading import read_audio, write_wav


def _transcribed(samples: np.ndarray, *options: str, rate: int = 16_000) -> tuple[dict, str]:
    """The JSON transcript of raw samples from a pipe, and the partial results shown meanwhile."""
    sound = (samples * 32767).astype("<i2").tobytes()
    command = [
        sys.executable,
        "transcribe.py",
        "-",
        "--rate",
        str(rate),
        "--stream",
        "--format",
        "json",
        *options,
    ]
    done = subprocess.run(command, cwd=ROOT, input=sound, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout), done.stderr.decode()


def test_live_sound_gives_the_text_of_a_recording_of_the_same_samples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    speech = read_audio(RECORDING, 16_000)
    shown, progress = _transcribed(speech)
    (segment,) = shown["segments"]
    assert " ".join(progress.splitlines()[-2].split()) == segment["pinyin"]
    assert "looking ahead 400 ms" in progress.splitlines()[-1]
    assert all(0 < syllable["confidence"] < 1 for syllable in segment["syllables"])
    first, end = (round(segment[edge] / FRAME_SECONDS) for edge in ("start", "end"))
    size = round(16_000 * FRAME_SECONDS)
    write_wav(tmp_path / "cut.wav", np.trunc(speech * 32767)[first * size : end * size] / 32768)
    assert load_script("transcribe.py").main([str(tmp_path / "cut.wav"), "--format", "json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert (whole["hanzi"], whole["pinyin"]) == (shown["hanzi"], shown["pinyin"])
    assert whole["segments"][0]["n_best"] == segment["n_best"]


def test_phrases_from_a_microphone(tmp_path: Path):
    phrases = tmp_path / "phrases.txt"
    phrases.write_text("如果无法控制\n打开客厅的灯\n", encoding="utf-8")
    pause = np.zeros(2 * 8_000, np.float32)
    sound = np.concatenate([read_audio(RECORDING, 8_000), pause])
    shown, progress = _transcribed(sound, "--phrases", str(phrases), rate=8_000)
    (segment,) = shown["segments"]
    assert (segment["hanzi"], segment["accepted"]) == ("如果无法控制", True)
    assert "guo3 wu2 fa3" in progress


def test_ctrl_c_ends_the_sound_and_the_last_utterance_gets_its_text():
    speech = read_audio(RECORDING, 16_000)
    command = [sys.executable, "transcribe.py", "-", "--rate", "16000", "--stream"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdin.write((speech * 32767).astype("<i2").tobytes())
        process.stdin.flush()
        partials = ""
        while "guo3 wu2 fa3" not in partials:  # the utterance has begun and not yet ended
            partials += process.stderr.read1().decode()
        process.send_signal(signal.SIGINT)
        shown, problems = (text.decode() for text in process.communicate())
    assert process.returncode == 130
    assert problems.splitlines()[-1] == "stopped by Ctrl-C"
    assert shown.startswith("如果无法")


def test_a_microphone(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    speech = read_audio(RECORDING, 16_000)
    monkeypatch.setitem(sys.modules, "sounddevice", Microphone(speech, 16_000))
    monkeypatch.setattr(microphone_module, "_TIMEOUT_SECONDS", 0.2)
    transcribe = load_script("transcribe.py")
    assert transcribe.main(["--microphone"]) == 1
    shown = capsys.readouterr()
    assert shown.out.startswith("如果")
    assert "the microphone gives no more audio" in shown.err
    with pytest.raises(SystemExit):
        transcribe.main(["--microphone", str(RECORDING)])
