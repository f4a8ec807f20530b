"""Tests of pinyin pairs as flat arrays: content, readings, any number of workers, a killed preparation."""

import json
import lzma
import os
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from data.text import pinyin_pair_preparation, sources
from data.text.pinyin_pair_dataset import (
    HANZI_LINE_END,
    PairDataset,
    PairShard,
)
from data.text.pinyin_pair_preparation import (
    BEYOND_BMP,
    LONE_CR,
    NOT_HANZI,
    NOT_UTF8,
    UNREAD,
    PairReader,
    prepare_pairs,
)
from data.text.pinyin_pairs import read_pairs
from tests.support.damage import DAMAGE, damage_file
from tests.support.polyphones import read_sentences
from utils.errors import CacheError, ConfigError, CorpusError
from utils.mandarin.pinyin import full_inventory, hanzi_to_pinyin
from utils.mandarin.sandhi import spoken_variants

SMALL = 2000  # bytes in each piece


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return [sentence.text for sentence in read_sentences()]


@pytest.fixture
def text(tmp_path, lines) -> Path:
    path = tmp_path / "news.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(sources, "PIECE", SMALL)


def line_starts(shard: PairShard) -> np.ndarray:
    """Where each line begins, and last the number of positions."""
    return np.concatenate([[0], np.flatnonzero(shard.hanzi == HANZI_LINE_END) + 1])


def read_back(shard: PairShard) -> list[tuple[tuple[str, ...], str]]:
    inventory = full_inventory()
    starts = line_starts(shard)
    return [
        (
            tuple(inventory[number - 1] for number in shard.syllables[a : b - 1]),
            "".join(map(chr, shard.hanzi[a : b - 1])),
        )
        for a, b in pairwise(starts)
    ]


def content(dataset: PairDataset) -> list[tuple[bytes, bytes, dict[str, int]]]:
    return [(s.syllables.tobytes(), s.hanzi.tobytes(), s.rejected) for s in dataset.shards]


def test_prepared_pairs_are_the_lines_and_their_pinyin(text, tmp_path, lines, small_pieces):
    dataset = prepare_pairs([text], tmp_path / "pairs")
    (shard,) = dataset.shards
    assert list(shard.pairs()) == read_back(shard) == read_pairs([text])
    counts = (len(lines), sum(map(len, lines)))
    assert (shard.line_count, shard.hanzi_count) == counts
    assert dataset.hanzi_count == shard.hanzi_count
    assert len(shard) == len(shard.syllables) == len(shard.hanzi)
    assert isinstance(shard.hanzi, np.memmap)


def test_lines_that_cannot_be_used_are_counted_by_reason(tmp_path):
    path = tmp_path / "a.txt.xz"
    raw = "\ufeff你好\r\n\n 音乐 \nabc\n三D\n𠀀\n㐂好\n音，乐".encode() + b"\n\xff\xfe\n"
    path.write_bytes(lzma.compress(raw))
    dataset = prepare_pairs([path], tmp_path / "pairs")
    assert [hanzi for _, hanzi in read_back(dataset.shards[0])] == ["你好", "音乐"]
    assert dataset.rejected == {NOT_HANZI: 3, BEYOND_BMP: 1, UNREAD: 1, NOT_UTF8: 1}
    saved = json.loads(next((tmp_path / "pairs").glob("a-*.json")).read_text(encoding="utf-8"))
    assert saved["rejected"] == dataset.rejected


def test_lone_carriage_returns_are_named_as_the_reason(tmp_path):
    (tmp_path / "old.txt").write_bytes("今天天气很好\r我们\r".encode())
    with pytest.raises(CorpusError, match=r"1 lines: with carriage returns \(CR\) in place of line ends"):
        prepare_pairs([tmp_path / "old.txt"], tmp_path / "pairs")
    (tmp_path / "mixed.txt").write_bytes("今天天气很好\r\n我们\r你们\n他们A\n".encode())
    dataset = prepare_pairs([tmp_path / "mixed.txt"], tmp_path / "pairs")
    assert dataset.rejected == {LONE_CR: 1, NOT_HANZI: 1}
    assert [shard.line_count for shard in dataset.shards] == [1]


def test_workers_and_pieces_change_nothing(text, tmp_path, monkeypatch):
    whole = content(prepare_pairs([text], tmp_path / "whole", spoken=0.5))
    monkeypatch.setattr(sources, "PIECE", SMALL)
    assert content(prepare_pairs([text], tmp_path / "pieces", spoken=0.5)) == whole
    monkeypatch.setattr(pinyin_pair_preparation, "PIECE", SMALL)
    assert content(prepare_pairs([text], tmp_path / "processes", spoken=0.5)) == whole


@pytest.mark.parametrize("spoken", [0.2, 0.8])
def test_spoken_variants_have_the_requested_frequency_and_are_valid(lines, spoken):
    piece = "\n".join(lines).encode()
    cited, varied = (PairReader(fraction, seed=1).read(piece) for fraction in (0.0, spoken))
    assert (cited.hanzi == varied.hanzi).all()
    other = PairReader(spoken, seed=2).read(piece)
    assert (other.syllables != varied.syllables).any()
    inventory, position, possible, changed = full_inventory(), 0, 0, 0
    for line in lines:
        for readings in spoken_variants(line, hanzi_to_pinyin(line)):
            assert inventory[varied.syllables[position] - 1] in readings
            possible += len(readings) > 1
            changed += inventory[varied.syllables[position] - 1] != readings[0]
            position += 1
        position += 1
    expected = spoken * possible
    assert possible > 300
    assert abs(changed - expected) < 4 * (expected * (1 - spoken)) ** 0.5  # 4 standard deviations


def test_readings_are_counted(text, tmp_path, lines, monkeypatch):
    monkeypatch.setattr("data.text.pinyin_pair_dataset._COUNTED_TOGETHER", 1000)
    dataset = prepare_pairs([text, text], tmp_path / "pairs")
    expected = Counter()
    for line in lines:
        expected.update(zip(hanzi_to_pinyin(line), line, strict=True))
    assert {(s, h): n for s, h, n in dataset.shards[0].count_readings().named()} == expected
    assert {(s, h): n for s, h, n in dataset.count_readings().named()} == {
        k: 2 * n for k, n in expected.items()
    }


def test_another_reading_or_text_is_prepared_again(text, tmp_path, monkeypatch):
    folder = tmp_path / "pairs"
    first = prepare_pairs([text], folder).shards[0].name
    assert prepare_pairs([text], folder, seed=3).shards[0].name == first  # without random readings
    os.utime(text, (0, 0))
    assert prepare_pairs([text], folder).shards[0].name == first
    spoken = prepare_pairs([text], folder, spoken=0.1).shards[0].name
    monkeypatch.setattr(pinyin_pair_preparation, "reading_version", lambda: "another")
    again = prepare_pairs([text], folder).shards[0].name
    text.write_text("你好\n", encoding="utf-8")
    changed = prepare_pairs([text], folder).shards[0].name
    assert len({first, spoken, again, changed}) == 4


@pytest.mark.parametrize("ending", ["syllables", "hanzi", "json", "sha256"])
@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_is_named_and_made_again(text, tmp_path, ending, kind):
    whole = content(prepare_pairs([text], tmp_path))
    (path,) = tmp_path.glob(f"news-*.{ending}")
    damage_file(path, kind, np.random.default_rng(0))
    with pytest.raises(CacheError, match=r"damaged .*delete .*\.sha256"):
        prepare_pairs([text], tmp_path)
    next(tmp_path.glob("news-*.sha256")).unlink()
    assert content(prepare_pairs([text], tmp_path)) == whole


def test_planted_faults_are_named(text, tmp_path):
    folder = tmp_path / "pairs"
    with pytest.raises(CorpusError, match="can't read the text"):
        prepare_pairs([tmp_path / "missing.txt"], folder)
    (tmp_path / "gb.txt").write_bytes("你好吗\n很好\n".encode("gb18030"))
    with pytest.raises(CorpusError, match="no usable line"):
        prepare_pairs([tmp_path / "gb.txt"], folder)
    with pytest.raises(CorpusError, match="no texts"):
        prepare_pairs([], folder)
    with pytest.raises(ConfigError, match="spoken is 2, not a fraction"):
        prepare_pairs([text], folder, spoken=2)
