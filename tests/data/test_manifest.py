"""Tests of manifests: round trips, normalised pinyin, errors with file and line."""

from pathlib import Path

import pytest

from data.manifest import (
    Transcript,
    Utterance,
    read_manifest,
    read_transcripts,
    write_manifest,
)
from utils.errors import CorpusError

HEADER = "id\taudio\tseconds\tspeaker\tpinyin\thanzi\n"


def utterance(folder: Path, **changes) -> Utterance:
    values = {
        "id": "A11_0",
        "audio": folder / "wav" / "A11_0.wav",
        "seconds": 1.25,
        "speaker": "A11",
        "pinyin": ("lv4", "de5"),
        "hanzi": "绿的",
    }
    return Utterance(**values | changes)


def test_round_trip_from_another_folder(tmp_path):
    written = [utterance(tmp_path), utterance(tmp_path, id="A11_1", spoken_pinyin=("lv4", "di4"))]
    write_manifest(tmp_path / "datasets" / "x" / "train.tsv", written)
    assert read_manifest(tmp_path / "datasets" / "x" / "train.tsv") == written
    lines = (tmp_path / "datasets" / "x" / "train.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == HEADER.rstrip() + "\tspoken_pinyin"
    assert lines[1] == "A11_0\t../../wav/A11_0.wav\t1.250\tA11\tlv4 de5\t绿的\t"


def test_spoken_column_only_where_there_is_a_spoken_reading(tmp_path):
    write_manifest(tmp_path / "a.tsv", [utterance(tmp_path)])
    assert (tmp_path / "a.tsv").read_text(encoding="utf-8").splitlines()[0] == HEADER.rstrip()
    write_manifest(tmp_path / "empty.tsv", [])
    assert read_manifest(tmp_path / "empty.tsv") == []


def test_pinyin_becomes_canonical(tmp_path):
    (tmp_path / "a.tsv").write_text(HEADER + "x\tx.wav\t1\ts\tLü4 de\t绿的\n", encoding="utf-8")
    assert read_manifest(tmp_path / "a.tsv")[0].pinyin == ("lv4", "de5")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x\tx.wav\t1\ts\tlv4 de", "5 fields instead of 6"),
        ("x\tx.wav\tone\ts\tlv4 de\t绿的", "'one' is not a number"),
        ("x\tx.wav\tnan\ts\tlv4 de\t绿的", "not possible"),
        ("x\tx.wav\t-1\ts\tlv4 de\t绿的", "not possible"),
        ("x\tx.wav\t1\ts\tlv4\t绿的", "syllables and hanzi differ in number: 1 and 2"),
        ("x\tx.wav\t1\ts\tlv4 dx5\t绿的", "'dx5' is not a Mandarin syllable"),
    ],
)
def test_errors_name_file_and_line(tmp_path, line, message):
    path = tmp_path / "a.tsv"
    path.write_text(f"{HEADER}\n{line}\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=message) as error:
        read_manifest(path)
    assert f"{path}:3" in str(error.value)


@pytest.mark.parametrize("header", ["", "id\taudio\n", HEADER.rstrip() + "\tmood\n"])
def test_wrong_header(tmp_path, header):
    path = tmp_path / "a.tsv"
    path.write_text(header, encoding="utf-8")
    with pytest.raises(CorpusError, match="header"):
        read_manifest(path)


def test_missing_file_wrong_encoding_id_twice(tmp_path):
    path = tmp_path / "a.tsv"
    with pytest.raises(CorpusError, match="No such file"):
        read_manifest(path)
    path.write_bytes((HEADER + "x\tx.wav\t1\ts\tlv4 de\t绿的\n").encode("gb18030"))
    with pytest.raises(CorpusError, match=r"not UTF-8 text, .*a\.tsv:2, .*iconv"):
        read_manifest(path)
    path.write_text(HEADER + "x\tx.wav\t1\ts\tlv4\t绿\n" * 2, encoding="utf-8")
    with pytest.raises(CorpusError, match=r"duplicate id 'x', first in line 2, .*a\.tsv:3"):
        read_manifest(path)


@pytest.mark.parametrize("changes", [{"id": "a\tb"}, {"speaker": "a\nb"}])
def test_fields_that_would_break_the_file_are_refused(tmp_path, changes):
    with pytest.raises(CorpusError, match="tab or a line break"):
        write_manifest(tmp_path / "a.tsv", [utterance(tmp_path, **changes)])
    assert not list(tmp_path.iterdir())


def test_transcripts_with_and_without_audio(tmp_path):
    (tmp_path / "list.tsv").write_text("\ufeffA1\tlv4 de\t绿的\r\n", encoding="utf-8")
    assert read_transcripts(tmp_path / "list.tsv") == [Transcript("A1", ("lv4", "de5"), "绿的")]
    write_manifest(tmp_path / "a.tsv", [utterance(tmp_path)])
    assert read_transcripts(tmp_path / "a.tsv") == [Transcript("A11_0", ("lv4", "de5"), "绿的")]
    (tmp_path / "bad.tsv").write_text("A1\tlv4 de\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"2 fields instead of 3, .*bad\.tsv:1"):
        read_transcripts(tmp_path / "bad.tsv")


def test_relative_audio_is_relative_to_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_manifest("lists/a.tsv", [utterance(Path())])
    write_manifest("lists/b.tsv", [utterance(Path(), audio=Path("x.wav"))])
    assert read_manifest("lists/a.tsv") == [utterance(tmp_path)]
    assert read_manifest("lists/b.tsv")[0].audio == tmp_path / "x.wav"


def test_a_link_leads_to_the_manifest_that_is_written(tmp_path):
    target = tmp_path / "store" / "deep" / "train.tsv"
    target.parent.mkdir(parents=True)
    target.write_text("", encoding="utf-8")
    link = tmp_path / "train.tsv"
    link.symlink_to(target)
    write_manifest(link, [utterance(tmp_path)])
    assert link.is_symlink() and read_manifest(target) == [utterance(tmp_path)]
    assert read_manifest(link) == [utterance(tmp_path)]
