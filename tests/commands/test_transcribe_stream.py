"""Tests of transcribe.py --stream on a pipe of microphone samples, with the shipped models."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.microphone import Microphone
from tests.support.recordings import RECORDING, RECORDINGS
from tests.support.scripts import ROOT, load_script
from utils.audio import microphone as microphone_module
from utils.audio.reading import read_audio
from utils.audio.samples import write_wav
from utils.errors import ConfigError
from utils.run_folder.run import PRETRAINED_STREAMING


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


def test_live_sound_gives_the_transcript_of_a_file_of_the_same_samples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """In every value of the segments with text; a file is cut at the same pauses."""
    pause = np.zeros(16_000, np.float32)
    speech = np.concatenate([part for path in RECORDINGS for part in (pause, read_audio(path, 16_000))])
    shown, progress = _transcribed(speech)
    assert len(shown["segments"]) >= len(RECORDINGS)
    assert all(" ".join(segment["pinyin"].split()) in progress for segment in shown["segments"])
    write_wav(tmp_path / "stdin.wav", np.trunc(speech * 32767) / 32768)
    transcribe = load_script("transcribe.py")
    assert transcribe.main([str(tmp_path / "stdin.wav"), "--format", "json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    names = ("seconds", "hanzi", "pinyin")
    assert [whole[name] for name in names] == [shown[name] for name in names]
    assert [each for each in whole["segments"] if each["hanzi"]] == shown["segments"]
    syllables = [each for segment in shown["segments"] for each in segment["syllables"]]
    assert all(0 <= each["start"] < each["end"] <= shown["seconds"] for each in syllables)


def test_the_second_pass_can_be_turned_off(capsys: pytest.CaptureFixture[str]):
    speech = read_audio(RECORDING, 16_000)
    shown, progress = _transcribed(speech, "--no-second-pass")
    assert shown["hanzi"].startswith("如果") and "looking ahead" in progress
    arguments = [
        str(RECORDING),
        "--stream",
        "--speech",
        str(PRETRAINED_STREAMING),
        "--joint",
        "--format",
        "json",
    ]
    assert load_script("transcribe.py").main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["pinyin"] == shown["pinyin"]
    for wrong in (["a.wav"], ["-", "--stream", "--speech", "run"]):
        with pytest.raises(ConfigError, match="--no-second-pass is for live audio"):
            load_script("transcribe.py").main([*wrong, "--no-second-pass"])


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
