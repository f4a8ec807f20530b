"""Tests of reading training text: kinds of sources, omitted lines, limits, cache."""

import lzma
from pathlib import Path

import pytest

from data.manifest import Utterance, write_manifest
from data.text.pinyin_pairs import Pair, read_pairs
from utils.errors import CorpusError

HELLO = Pair(("ni3", "hao3"), "你好")
MUSIC = Pair(("yin1", "yue4"), "音乐")


@pytest.fixture
def text(tmp_path) -> Path:
    path = tmp_path / "lines.txt"
    path.write_text("你好\n\n音乐,\nabc\n  音乐 \r\n三D\n", encoding="utf-8")
    return path


def test_sources_of_all_kinds_in_their_order_and_a_limit_over_all(text, tmp_path, caplog):
    noise = Utterance("n", tmp_path / "n.wav", 1.0, "s", (), "")
    write_manifest(tmp_path / "m.tsv", [Utterance("a", tmp_path / "a.wav", 1.0, "s", *HELLO), noise])
    (tmp_path / "t.tsv").write_text("x\tyin1 yue4\t音乐\ny\tni3 hao3\t你好\n", encoding="utf-8")
    packed = tmp_path / "lines.txt.xz"
    packed.write_bytes(lzma.compress(text.read_bytes()))
    sources = [tmp_path / "t.tsv", str(text), tmp_path / "m.tsv", packed]
    found = [MUSIC, HELLO, HELLO, MUSIC, HELLO, HELLO, MUSIC]
    assert read_pairs(sources) == found
    assert [record.getMessage().split(" of ")[0] for record in caplog.records] == ["3 lines"] * 2
    for limit in (1, 3, 7):
        assert read_pairs(sources, limit=limit) == found[:limit]


def test_readings_follow_the_phrase(tmp_path):
    (tmp_path / "a.txt").write_text("银行行长\n重庆很重\n", encoding="utf-8")
    bank, city = read_pairs([tmp_path / "a.txt"])
    assert bank.pinyin == ("yin2", "hang2", "hang2", "zhang3")
    assert city.pinyin == ("chong2", "qing4", "hen3", "zhong4")


def test_cache_gives_the_same_and_notices_a_changed_file(text, tmp_path, monkeypatch, caplog):
    cache = tmp_path / "cache"
    first = read_pairs([text])
    assert read_pairs([text], cache=cache) == first
    monkeypatch.setattr("data.text.pinyin_pair_preparation.hanzi_to_pinyin", None)  # proof that it is kept
    assert read_pairs([text], cache=cache) == first
    assert len(caplog.records) == 3
    monkeypatch.undo()
    text.write_text("你好\n", encoding="utf-8")
    assert read_pairs([text], cache=cache) == [HELLO]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "你好".encode("gb18030"), "not UTF-8"),
        ("a.txt.xz", b"no xz at all", "damaged"),
        ("a.txt.xz", lzma.compress("你好\n".encode() * 9)[:-20], "damaged"),
        ("a.csv", b"", "unknown kind of text"),
        ("a.txt", b"abc\n", "no usable sentence"),
    ],
)
def test_bad_files_are_named(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(CorpusError, match=message) as caught:
        read_pairs([path])
    assert name in str(caught.value)


def test_missing_files_and_no_sources(tmp_path):
    for cache in (None, tmp_path / "cache"):
        with pytest.raises(CorpusError, match=r"nowhere\.txt"):
            read_pairs(["nowhere.txt"], cache=cache)
    with pytest.raises(CorpusError, match="no sources"):
        read_pairs([])
