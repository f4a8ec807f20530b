"""transcribe.py and utils/transcript_formats.py: any file goes through, and one bad file stops no other."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
import soundfile

import transcribe
from utils.audio import write_wav
from utils.errors import AudioError, ConfigError, RunError, UserError
from utils.recognition import Alternative, Recognition
from utils.transcript_formats import FORMATS, as_json, as_srt, as_text, as_textgrid

RATE = 16_000
SHARED = Path(__file__).parents[1].parent / "shared" / "data"
NOISE = np.random.default_rng(0).normal(0, 0.1, 2 * RATE).astype(np.float32)


def _recognition(pinyin: str, hanzi: str, times: list[tuple[float, float]], seconds: float) -> Recognition:
    syllables = tuple(pinyin.split())
    best = Alternative(syllables, hanzi, -1.5)
    return Recognition("talk", seconds, syllables, hanzi, -1.5, tuple(times), (best,))


TALK = _recognition("ni3 hao3 ma5", "你好吗", [(0.1, 0.3), (0.3, 0.5), (3661.2, 3661.4567)], 3662.0)
SILENCE = _recognition("", "", [], 2.0)


def test_text():
    assert as_text(TALK) == "你好吗\n"
    assert as_text(_recognition("ni3 hao3", "", [(0, 1), (1, 2)], 2)) == "ni3 hao3\n"
    assert as_text(SILENCE) == "\n"


def test_json():
    value = json.loads(as_json(TALK))
    assert (value["id"], value["hanzi"], value["pinyin"], value["seconds"]) == (
        "talk",
        "你好吗",
        "ni3 hao3 ma5",
        3662,
    )
    assert value["syllables"][2] == {"pinyin": "ma5", "hanzi": "吗", "start": 3661.2, "end": 3661.457}
    assert value["n_best"] == [{"hanzi": "你好吗", "pinyin": "ni3 hao3 ma5", "score": -1.5}]
    assert json.loads(as_json(SILENCE))["syllables"] == []


def test_srt_has_a_cue_for_each_stretch_of_speech():
    assert as_srt(TALK) == (
        "1\n00:00:00,100 --> 00:00:00,500\n你好\n\n2\n01:01:01,200 --> 01:01:01,457\n吗\n"
    )
    assert as_srt(SILENCE) == ""


def test_srt_cuts_long_speech_into_lines():
    times = [(0.2 * i, 0.2 * (i + 1)) for i in range(50)]
    cues = as_srt(_recognition("ma1 " * 50, "妈" * 50, times, 10.0)).split("\n\n")
    assert [len(cue.splitlines()[2]) for cue in cues] == [24, 24, 2]


def test_textgrid_tiles_the_whole_recording():
    text = as_textgrid(TALK)
    assert text.startswith('File type = "ooTextFile"\nObject class = "TextGrid"\n')
    assert re.findall(r'name = "(\w+)"', text) == ["hanzi", "pinyin"]
    tier = text.split("item [2]")[1]
    edges = re.findall(
        r"^ {12}xmin = ([\d.]+)\n {12}xmax = ([\d.]+)\n {12}text = \"(.*)\"", tier, re.MULTILINE
    )
    assert [label for _, _, label in edges] == ["", "ni3", "hao3", "", "ma5", ""]
    assert edges[0][0] == "0.0000" and edges[-1][1] == "3662.0000"
    assert all(one[1] == other[0] for one, other in itertools.pairwise(edges))
    assert "intervals: size = 6" in tier


def test_textgrid_without_hanzi_or_speech():
    text = as_textgrid(SILENCE)
    assert re.findall(r'name = "(\w+)"', text) == ["pinyin"]
    assert "intervals: size = 1" in text


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    """Recordings of several kinds, two of the same name, one broken."""
    folder = tmp_path / "talks"
    write_wav(folder / "a.wav", NOISE)
    write_wav(folder / "deep" / "b.wav", NOISE[: RATE // 2])
    stereo = np.stack([NOISE, NOISE], axis=1)
    soundfile.write(folder / "a.mp3", stereo, 22_050, format="MP3")
    soundfile.write(folder / "c.ogg", NOISE, 8_000, format="OGG")
    (folder / "broken.flac").write_text("not audio")
    (folder / "notes.txt").write_text("no recording")
    return folder


@pytest.fixture
def runs(speech_run: Path, language_run: Path) -> list[str]:
    return ["--speech", str(speech_run), "--language", str(language_run)]


def test_a_folder_with_a_broken_file(talks, runs, tmp_path, capsys):
    output = tmp_path / "out"
    assert transcribe.main([str(talks), *runs, "--format", "json", "--output", str(output)]) == 1
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error:")]
    assert len(errors) == 1 and "broken.flac" in errors[0]
    written = {path.relative_to(output).as_posix() for path in output.rglob("*.*")}
    assert written == {"a.wav.json", "a.mp3.json", "c.json", "deep/b.json"}
    value = json.loads((output / "deep/b.json").read_text())
    assert value["seconds"] == 0.5
    assert len(value["hanzi"]) == len(value["syllables"])


@pytest.mark.parametrize("form", list(FORMATS))
def test_one_file_is_printed_as_it_would_be_written(talks, runs, tmp_path, capsys, form):
    arguments = [str(talks / "a.wav"), *runs, "--format", form]
    assert transcribe.main(arguments) == 0
    printed = capsys.readouterr().out
    assert transcribe.main([*arguments, "--output", str(tmp_path)]) == 0
    assert (tmp_path / f"a{FORMATS[form].suffix}").read_text() == printed


def test_several_files_are_printed_a_line_each(talks, runs, capsys):
    files = [str(talks / "a.wav"), str(talks / "c.ogg")]
    assert transcribe.main([*files, *runs]) == 0
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == files
    assert transcribe.main([*files, *runs, "--format", "json", "--beam", "3", "--n-best", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["id"] for line in lines] == files
    assert all(1 <= len(json.loads(line)["n_best"]) <= 2 for line in lines)


def test_several_subtitle_files_need_a_folder(talks, runs):
    with pytest.raises(UserError, match="give --output DIR for the 2 srt files"):
        transcribe.main([str(talks / "a.wav"), str(talks / "c.ogg"), *runs, "--format", "srt"])


def test_two_files_of_one_name_are_not_written_over_each_other(talks, runs, tmp_path):
    write_wav(tmp_path / "a.wav", NOISE)
    arguments = [str(talks / "a.wav"), str(tmp_path / "a.wav"), *runs, "--output", str(tmp_path / "out")]
    with pytest.raises(UserError, match=r"2 files would be written as 'a\.wav\.txt'"):
        transcribe.main(arguments)


def test_a_missing_file_gives_an_error_line(talks, runs, capsys):
    assert transcribe.main([str(talks / "none.wav"), str(talks / "c.ogg"), *runs]) == 1
    captured = capsys.readouterr()
    assert "no such audio file" in captured.err and "1 of 2 files could not be read" in captured.err
    assert captured.out.startswith(str(talks / "c.ogg"))


def test_a_folder_without_recordings(tmp_path, runs):
    with pytest.raises(AudioError, match="no recordings"):
        transcribe.main([str(tmp_path), *runs])


def test_without_runs_the_demo_is_needed(talks, tmp_path, monkeypatch, speech_run, language_run, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError, match=r"no runs/demo/speech.*--speech RUN.*make demo"):
        transcribe.main([str(talks / "a.wav")])
    demo = tmp_path / "runs" / "demo"
    demo.mkdir(parents=True)
    (demo / "speech").symlink_to(speech_run)
    (demo / "language").symlink_to(language_run)
    assert transcribe.main([str(talks / "a.wav")]) == 0


def test_more_readings_than_beam(talks, runs):
    with pytest.raises(ConfigError, match="5 readings from a beam of 1"):
        transcribe.main([str(talks / "a.wav"), *runs, "--n-best", "5"])


def test_help_has_examples(capsys):
    with pytest.raises(SystemExit) as stopped:
        transcribe.main(["--help"])
    assert stopped.value.code == 0
    assert "python transcribe.py recording.wav" in capsys.readouterr().out


@pytest.mark.shared
def test_real_recordings_of_every_kind(runs, tmp_path, capsys):
    folders = [
        SHARED / "audio" / name for name in ("aishell1_two_speakers", "dspspeech20", "words_one_speaker_mp3")
    ]
    if not all(folder.is_dir() for folder in folders):
        pytest.skip(f"no recordings under {SHARED / 'audio'}")
    files = [
        str(file)
        for folder in folders
        for file in sorted(folder.rglob("*"))
        if file.suffix in (".flac", ".mp3")
    ][::400]
    assert transcribe.main([*files, *runs, "--format", "json", "--output", str(tmp_path)]) == 0
    assert len(list(tmp_path.glob("*.json"))) == len(files)
