"""Tests of recognition.load(): files, samples and streams have the text of transcribe.py."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import transcribe
from recognition import load
from recognition.recognizer import Recognizer
from tests.support.recordings import FOLDER, RECORDING, SYLLABLES
from utils.audio.properties import read_channels
from utils.audio.samples import as_int16
from utils.errors import AudioError, ConfigError

ROOT = Path(__file__).parents[2]
PROGRAM = """
import ast, json, sys
from pathlib import Path
root, recording = map(Path, sys.argv[1:])
sys.path.insert(0, str(root))
from recognition import load
text = load().transcribe(recording).text
own = [path for module in sys.modules.values() if (path := getattr(module, "__file__", None))]
own = [Path(path) for path in own if root in Path(path).parents and ".venv" not in path]
words = [path.name for path in own if "import argparse" in path.read_text(encoding="utf-8")]
print(json.dumps([text, words, sorted({"tensorflow", "keras"} & sys.modules.keys())]))
"""


@pytest.fixture(scope="module")
def recognizer() -> Recognizer:
    return load()


def test_files_samples_and_streams_have_the_text_of_transcribe(recognizer, capsys):
    paths = [FOLDER / name for name in SYLLABLES]
    assert transcribe.main(list(map(str, paths))) == 0
    printed = dict(line.split("\t") for line in capsys.readouterr().out.splitlines())
    for path in paths:
        samples, rate = read_channels(path)
        found = [recognizer.transcribe(path), recognizer.transcribe(samples[:, 0], rate)]
        found.append(recognizer.transcribe(as_int16(samples[:, 0]), rate))
        with recognizer.stream(rate=rate) as stream:
            results = [
                result
                for start in range(0, len(samples), rate // 10)
                for result in stream.feed(samples[start : start + rate // 10, 0])
            ]
        found.append(stream.result)
        assert [each.text for each in found] == [printed[str(path)]] * 4
        assert {type(result) for result in results} == {type(stream.result)}
        partial = [result for result in results if not result.is_final]
        assert len(partial) > 5 and partial[-1].stable > 0 and stream.result.segments[0].is_final
        assert stream.result.end == pytest.approx(len(samples) / rate)


def test_a_result_has_words_with_times_and_segments(recognizer):
    result = recognizer.transcribe(RECORDING)
    assert "".join(word.text for word in result.words) == result.hanzi
    assert [word.pinyin for word in result.words] == [(syllable,) for syllable in result.pinyin]
    assert [(word.start, word.end) for word in result.words] == list(result.times)
    assert [word.confidence for word in result.words] == list(result.confidence)
    assert "\n".join(segment.text for segment in result.segments) == result.text


def test_it_loads_from_another_folder_without_tensorflow_and_argparse(recognizer, tmp_path):
    call = [sys.executable, "-c", PROGRAM, str(ROOT), str(RECORDING.resolve())]
    ended = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == [recognizer.transcribe(RECORDING).text, [], []]


@pytest.mark.nightly
def test_an_installed_project_has_the_models(recognizer, tmp_path):
    """``pip install PATH``, without its requirements, which are there already."""
    pytest.importorskip("setuptools")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.rstrip("\0").split("\0"):
        (tmp_path / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / "project" / name)
    target = ["--target", str(tmp_path / "site"), str(tmp_path / "project")]
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", *target]
    subprocess.run(pip, cwd=tmp_path, check=True)
    shutil.rmtree(tmp_path / "project")
    call = [sys.executable, "-P", "-c", PROGRAM, str(tmp_path / "site"), str(RECORDING.resolve())]
    ended = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == [recognizer.transcribe(RECORDING).text, [], []]


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.zeros((100, 2), np.float32), r"samples with the shape \(100, 2\)"),
        (np.zeros(100, np.int32), "samples of type int32"),
        (np.full(100, 20_000.0), r"float samples up to 20000, expected -1 to 1"),
        (np.array([0.0, np.nan]), "1 samples are NaN"),
        (np.zeros(0, np.float32), "there are no samples"),
    ],
)
def test_other_samples_are_refused(recognizer, samples, message):
    with pytest.raises(AudioError, match=message):
        recognizer.transcribe(samples, 16_000)


def test_no_samples_of_another_rate_are_refused(recognizer):
    with pytest.raises(AudioError, match="there are no samples"):
        recognizer.transcribe(np.zeros(0, np.float32), 8_000)


def test_samples_need_their_rate_and_settings_must_exist(recognizer):
    with pytest.raises(AudioError, match="samples without their sample rate"):
        recognizer.transcribe(np.zeros(100, np.float32))
    with pytest.raises(TypeError, match="bean"):
        load(bean=3)
    with pytest.raises(ConfigError, match="--language-weight without the joint search"):
        load(language_weight=0.5, beam=4)
