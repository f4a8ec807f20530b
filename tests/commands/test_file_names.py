"""Tests of file names that are not UTF-8, such as GBK names of old archives: none of them ends a command."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import transcribe
from bundle.pack import pack
from data.corpora.tools.preparation import Candidate, Corpus, prepare
from data.keywords.folders import read_recordings
from data.manifest import Utterance, read_manifest, write_manifest
from tests.support.corpus_files import rejected
from tests.support.recordings import RECORDING
from tests.support.scripts import ROOT, load_script
from utils.audio.properties import audio_seconds, read_channels
from utils.audio.reading import read_audio
from utils.audio.samples import write_wav
from utils.errors import AudioError, CorpusError, UserError, printable
from utils.hypotheses.transcript_formats import FORMATS

NOISE = np.random.default_rng(0).normal(0, 0.1, 16_000).astype(np.float32)
GBK = "你好".encode("gbk")  # b"\xc4\xe3\xba\xc3", which is not UTF-8
SHOWN = r"\xc4\xe3\xba\xc3"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A recording and a damaged one with such names, and one with an ordinary name."""
    folder = tmp_path / "talks"
    for name in (os.fsdecode(GBK), "b"):
        write_wav(folder / f"{name}.wav", NOISE)
    (folder / os.fsdecode(GBK + b".flac")).write_text("no sound")
    return folder


@pytest.fixture
def gbk(folder: Path) -> Path:
    return folder / os.fsdecode(GBK + b".wav")


@pytest.fixture(scope="module")
def runs(speech_run: Path, language_run: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    run = tmp_path_factory.mktemp("packed") / "speech"
    pack(speech_run, run)
    return ["--speech", str(run), "--language", str(language_run)]


def test_a_name_is_shown_by_its_bytes():
    assert printable(Path(os.fsdecode(GBK + b".wav"))) == rf"{SHOWN}.wav"
    assert printable("好.wav") == "好.wav"
    assert printable("\ud800") == r"\ud800"
    error = UserError(os.fsdecode(GBK), where=os.fsdecode(GBK), hint=os.fsdecode(GBK))
    assert error.labelled() == f"error: {SHOWN}\nwhere: {SHOWN}\nhint: {SHOWN}"


def test_streams_of_commands_show_it(capfd):
    code = (
        "import os; from utils.command.entry import run_command; "
        "run_command(lambda: print(os.fsdecode(b'\\xc4')))"
    )
    for locale in ("C.UTF-8", "C"):
        environment = {**os.environ, "LC_ALL": locale}
        found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True)
        assert (found.returncode, found.stdout) == (0, b"\\xc4\n"), found.stderr


def test_recordings_are_read(gbk):
    assert len(read_audio(gbk)) == len(read_channels(str(gbk))[0]) == len(NOISE)
    assert audio_seconds(gbk) == 1.0
    with pytest.raises(AudioError) as caught:
        read_audio(gbk.with_suffix(".flac"))
    assert str(caught.value).isprintable() and rf"{SHOWN}.flac" in str(caught.value)


@pytest.mark.parametrize("form", list(FORMATS))
def test_transcripts_of_a_folder(folder, runs, tmp_path, capsys, form):
    call = [str(folder), *runs, "--format", form, "--output", str(tmp_path / "out")]
    assert transcribe.main(call) == 1
    failed = f"{printable(folder)}/{SHOWN}.flac"
    assert f"1 of 3 files could not be transcribed completely: {failed}" in capsys.readouterr().err
    suffix = FORMATS[form].suffix
    names = {f"{os.fsdecode(GBK)}.wav{suffix}", f"b{suffix}"}
    assert {path.name for path in (tmp_path / "out").glob("[!.]*")} == names
    for name in names:
        (tmp_path / "out" / name).read_text(encoding="utf-8")
    assert transcribe.main(call) == 1
    assert "2 of 3 were transcribed before: skipped" in capsys.readouterr().err


def test_printed_transcripts(folder, runs, capsys):
    assert transcribe.main([str(folder), *runs]) == 1
    assert rf"{folder}/{SHOWN}.wav" + "\t" in capsys.readouterr().out
    assert transcribe.main([str(folder), *runs, "--format", "json"]) == 1
    ids = [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()]
    assert ids == [f"{folder}/b.wav", rf"{folder}/{SHOWN}.wav"]


def test_a_list_with_such_names(folder, gbk, runs, tmp_path, capsys):
    listed = tmp_path / "list.txt"
    listed.write_bytes(os.fsencode(gbk) + b"\n")
    assert transcribe.main(["--list", str(listed), *runs]) == 0
    listed.write_bytes("你好.wav".encode("utf-16"))
    with pytest.raises(UserError, match="not UTF-8, and no name of a file"):
        transcribe.main(["--list", str(listed), *runs])


def test_doctor(folder, capsys):
    doctor = load_script("doctor.py")
    assert doctor.main([str(folder), "--workers", "1"]) == 1
    printed = capsys.readouterr().out
    assert rf"{SHOWN}.flac  not usable as audio" in printed
    assert rf"{SHOWN}.wav  a copy of another recording (same as {folder}/b.wav)" in printed
    assert doctor.main(["--json", str(folder), "--workers", "1"]) == 1
    items = [found["item"] for found in json.loads(capsys.readouterr().out)["findings"]]
    assert rf"{folder}/{SHOWN}.flac" in items


def test_listen(folder, capsys):
    named = folder / os.fsdecode(GBK + b".ogg")
    shutil.copy(RECORDING, named)
    listen = load_script("listen.py")
    call = ["--word", "无法控制", "--json", str(named), str(folder / "b.wav")]
    assert listen.main([*call, "--alarms-per-hour", "3"]) == 0
    (detection,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert detection["source"] == rf"{folder}/{SHOWN}.ogg"


def test_a_corpus_rejects_them(folder, gbk, tmp_path):
    """A manifest is UTF-8."""
    found = [
        Candidate(path.stem, "train", path, hanzi="你好", pinyin=("ni3", "hao3"))
        for path in (gbk, folder / "b.wav")
    ]
    prepare(Corpus("made_up", "", lambda *_: found, ("train",)), folder, tmp_path / "out")
    (only,) = read_manifest(tmp_path / "out" / "train.tsv")
    assert only.audio.name == "b.wav"
    _, reason, detail = rejected(tmp_path / "out")[SHOWN]
    assert reason == "file name is not UTF-8" and rf"{SHOWN}.wav: rename it" in detail
    with pytest.raises(CorpusError, match="a field is not UTF-8"):
        write_manifest(tmp_path / "list.tsv", [Utterance("a", gbk, 1.0, "", (), "")])


def test_folders_of_words_leave_them_out(tmp_path, capsys):
    for name in ("a", "b", os.fsdecode(GBK)):
        write_wav(tmp_path / "words" / "yes" / f"{name}.wav", NOISE)
    found = read_recordings(tmp_path / "words")
    assert [clip.id for clip in found] == ["yes/a.wav", "yes/b.wav"]
    assert rf"1 files of {tmp_path}/words/yes are left out" in capsys.readouterr().err
    write_wav(tmp_path / "words" / os.fsdecode(GBK) / "a.wav", NOISE)
    with pytest.raises(CorpusError, match=r"name of a word's folder is not UTF-8.*\\xc4\\xe3"):
        read_recordings(tmp_path / "words")
