"""Pairs as flat arrays: what is kept, how it is read, any number of workers, a killed preparation."""

from __future__ import annotations

import json
import lzma
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from data.text import pinyin_pair_shards, sources
from data.text.pinyin_pair_part import HANZI_LINE_END, PairPart, hanzi_table, syllable_table
from data.text.pinyin_pair_pieces import BEYOND_BMP, NOT_HANZI, NOT_UTF8, UNREAD, PairReader
from data.text.pinyin_pair_shards import PairShards, prepare_pairs
from data.text.pinyin_pairs import pairs_from_text
from tests.support.damage import DAMAGE, damage_file
from tests.support.polyphones import read_sentences
from tests.support.scripts import ROOT
from utils.errors import ConfigError, CorpusError
from utils.mandarin.pinyin import full_inventory, hanzi_to_pinyin
from utils.mandarin.polyphones import read_rules
from utils.mandarin.sandhi import spoken_variants

SMALL = 2000  # bytes a piece
PREPARE_AND_DIE = """
import os, signal, sys
import numpy as np
from data.text import sources
from data.text.pinyin_pair_shards import prepare_pairs

def save_or_die(path, **arrays):
    if "00003" in path.name:
        path.write_bytes(b"half a ")
        os.kill(os.getpid(), signal.SIGKILL)
    savez(path, **arrays)

savez, np.savez = np.savez, save_or_die
sources.PIECE = int(sys.argv[3])
prepare_pairs([sys.argv[1]], sys.argv[2], workers=1)
"""


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


def line_starts(part: PairPart) -> np.ndarray:
    """Where each line begins, and last the number of positions."""
    return np.concatenate([[0], np.flatnonzero(part.characters == HANZI_LINE_END) + 1])


def read_back(part: PairPart) -> list[tuple[tuple[str, ...], str]]:
    inventory = full_inventory()
    starts = line_starts(part)
    return [
        (
            tuple(inventory[place - 1] for place in part.syllables[a : b - 1]),
            "".join(map(chr, part.characters[a : b - 1])),
        )
        for a, b in pairwise(starts)
    ]


def content(shards: PairShards) -> list[tuple[bytes, bytes, dict[str, int]]]:
    return [(p.syllables.tobytes(), p.characters.tobytes(), p.rejected) for p in shards.parts]


def test_what_is_prepared_reads_back_as_the_lines_and_their_pinyin(text, tmp_path, lines, small_pieces):
    shards = prepare_pairs([text], tmp_path / "pairs", workers=1)
    (part,) = PairShards.load(tmp_path / "pairs").parts
    assert read_back(part) == [(pair.pinyin, pair.hanzi) for pair in pairs_from_text(text).pairs]
    assert (part.lines, part.hanzi) == (len(lines), sum(map(len, lines))) == (shards.lines, shards.hanzi)
    assert len(part) == len(part.syllables) == len(part.characters)
    assert isinstance(part.characters, np.memmap)
    assert not list((tmp_path / "pairs").glob("*piece*"))


def test_lines_that_cannot_be_used_are_counted_by_reason(tmp_path):
    path = tmp_path / "a.txt.xz"
    raw = "\ufeff你好\r\n\n 音乐 \nabc\n三D\n𠀀\n㐂好\n音，乐".encode() + b"\n\xff\xfe\n"
    path.write_bytes(lzma.compress(raw))
    shards = prepare_pairs([path], tmp_path / "pairs", workers=1)
    assert [hanzi for _, hanzi in read_back(shards.parts[0])] == ["你好", "音乐"]
    assert shards.rejected == {NOT_HANZI: 3, BEYOND_BMP: 1, UNREAD: 1, NOT_UTF8: 1}
    saved = json.loads(next((tmp_path / "pairs").glob("a-*.json")).read_text(encoding="utf-8"))
    assert saved["rejected"] == shards.rejected


def test_workers_and_pieces_change_nothing(text, tmp_path, monkeypatch):
    whole = content(prepare_pairs([text], tmp_path / "whole", workers=1, spoken=0.5))
    monkeypatch.setattr(sources, "PIECE", SMALL)
    assert content(prepare_pairs([text], tmp_path / "pieces", workers=1, spoken=0.5)) == whole
    assert content(prepare_pairs([text], tmp_path / "processes", workers=2, spoken=0.5)) == whole


def test_a_killed_preparation_goes_on_with_the_next_piece(text, tmp_path, monkeypatch, small_pieces):
    undisturbed = content(prepare_pairs([text], tmp_path / "undisturbed", workers=1))
    folder = tmp_path / "pairs"
    command = [sys.executable, "-c", PREPARE_AND_DIE, str(text), str(folder), str(SMALL)]
    died = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert sorted(path.name[-9:] for path in folder.glob("news*")) == ["00000.npz", "00001.npz", "00002.npz"]
    assert len(list(folder.glob(".*.npz"))) == 1
    with pytest.raises(CorpusError, match="no prepared pairs"):
        PairShards.load(folder)
    written, write_piece = [], pinyin_pair_shards.write_piece
    monkeypatch.setattr(
        pinyin_pair_shards, "write_piece", lambda *job: written.append(job[2]) or write_piece(*job)
    )
    assert content(prepare_pairs([text], folder, workers=1)) == undisturbed
    assert [path.name[-9:] for path in written][:2] == ["00003.npz", "00004.npz"]
    assert not list(folder.glob(".*"))
    written.clear()
    assert content(prepare_pairs([text], folder, workers=1)) == undisturbed
    assert written == []


@pytest.mark.parametrize("spoken", [0.2, 0.8])
def test_spoken_variants_come_as_often_as_asked_and_are_legal(lines, spoken):
    piece = "\n".join(lines).encode()
    cited, said = (PairReader(share, seed=1).read(piece) for share in (0.0, spoken))
    assert (cited.hanzi == said.hanzi).all()
    other = PairReader(spoken, seed=2).read(piece)
    assert (other.syllables != said.syllables).any()
    inventory, place, possible, changed = full_inventory(), 0, 0, 0
    for line in lines:
        for ways in spoken_variants(line, hanzi_to_pinyin(line)):
            assert inventory[said.syllables[place] - 1] in ways
            possible += len(ways) > 1
            changed += inventory[said.syllables[place] - 1] != ways[0]
            place += 1
        place += 1
    expected = spoken * possible
    assert possible > 300
    assert abs(changed - expected) < 4 * (expected * (1 - spoken)) ** 0.5  # 4 standard deviations


def test_every_reading_that_a_rule_gives_is_in_the_inventory():
    readings = {rule.reading for rules in read_rules().values() for rule in rules}
    assert readings <= set(full_inventory())


def test_readings_are_counted(text, tmp_path, lines, monkeypatch):
    monkeypatch.setattr("data.text.pinyin_pair_part._AT_ONCE", 1000)
    shards = prepare_pairs([text, text], tmp_path / "pairs", workers=1)
    expected = Counter()
    for line in lines:
        expected.update(zip(hanzi_to_pinyin(line), line, strict=True))
    assert {(s, h): n for s, h, n in shards.parts[0].count_readings().named()} == expected
    assert {(s, h): n for s, h, n in shards.count_readings().named()} == {
        k: 2 * n for k, n in expected.items()
    }


def test_tables_map_to_a_models_ids(text, tmp_path):
    (part,) = prepare_pairs([text], tmp_path / "pairs", workers=1).parts
    inventory, rng = full_inventory(), random.Random(0)
    ids = rng.sample(range(2, len(inventory) + 2), len(inventory))
    tokens = ["<pad>", "<unk>", *sorted(set("".join(h for _, h in read_back(part))))[:-1]]
    syllables, hanzi = part.encoded(syllable_table(np.array(ids), end=0), hanzi_table(tokens, 0, 1))
    assert syllables.dtype == hanzi.dtype == np.int16
    starts = line_starts(part)
    assert (syllables[starts[1:] - 1] == 0).all() and (hanzi[starts[1:] - 1] == 0).all()
    by_syllable = dict(zip(inventory, ids, strict=True))
    for (pinyin, line), start in zip(read_back(part), starts, strict=False):
        some = slice(start, start + len(line))
        assert syllables[some].tolist() == [by_syllable[one] for one in pinyin]
        assert hanzi[some].tolist() == [tokens.index(c) if c in tokens else 1 for c in line]
    tables = syllable_table(np.array(ids), end=0), hanzi_table(tokens, 0, 1)
    assert (part.encoded(*tables, 100, 200)[1] == hanzi[100:200]).all()
    assert syllable_table(np.array(ids) + 40_000, end=0).dtype == np.int32


def test_another_reading_or_text_is_prepared_again(text, tmp_path, monkeypatch):
    folder = tmp_path / "pairs"
    first = prepare_pairs([text], folder, workers=1).parts[0].stem
    assert prepare_pairs([text], folder, workers=1, seed=3).parts[0].stem == first  # nothing is drawn
    os.utime(text, (0, 0))
    assert prepare_pairs([text], folder, workers=1).parts[0].stem == first
    spoken = prepare_pairs([text], folder, workers=1, spoken=0.1).parts[0].stem
    monkeypatch.setattr(pinyin_pair_shards, "reading_version", lambda: "another")
    again = prepare_pairs([text], folder, workers=1).parts[0].stem
    text.write_text("你好\n", encoding="utf-8")
    changed = prepare_pairs([text], folder, workers=1).parts[0].stem
    assert len({first, spoken, again, changed}) == 4
    assert [part.stem for part in PairShards.load(folder).parts] == [changed]


@pytest.mark.parametrize("ending", ["syllables.npy", "hanzi.npy", "json", "sha256"])
@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_is_named_and_made_again(text, tmp_path, ending, kind):
    whole = content(prepare_pairs([text], tmp_path, workers=1))
    (path,) = tmp_path.glob(f"news-*.{ending}")
    damage_file(path, kind, np.random.default_rng(0))
    for read in (lambda: PairShards.load(tmp_path), lambda: prepare_pairs([text], tmp_path, workers=1)):
        with pytest.raises(CorpusError, match=r"damaged .*delete .*\.sha256"):
            read()
    next(tmp_path.glob("news-*.sha256")).unlink()
    assert content(prepare_pairs([text], tmp_path, workers=1)) == whole


def test_planted_faults_are_named(text, tmp_path, monkeypatch):
    folder = tmp_path / "pairs"
    with pytest.raises(CorpusError, match="can't read the text"):
        prepare_pairs([tmp_path / "missing.txt"], folder, workers=1)
    (tmp_path / "gb.txt").write_bytes("你好吗\n很好\n".encode("gb18030"))
    with pytest.raises(CorpusError, match="no line that can be used"):
        prepare_pairs([tmp_path / "gb.txt"], folder, workers=1)
    with pytest.raises(CorpusError, match="no texts"):
        prepare_pairs([], folder)
    with pytest.raises(ConfigError, match="share"):
        prepare_pairs([text], folder, spoken=2)
    (part,) = prepare_pairs([text], folder, workers=1).parts
    array = part.stem.with_name(part.stem.name + ".hanzi.npy")
    array.write_bytes(array.read_bytes()[:-10])
    with pytest.raises(CorpusError, match="damaged"):
        PairShards.load(folder).parts[0].count_readings()
    monkeypatch.setattr(pinyin_pair_shards, "full_inventory", lambda: ("a1",))
    pinyin_pair_shards._inventory_hash.cache_clear()
    with pytest.raises(CorpusError, match="another inventory"):
        PairShards.load(folder)
    pinyin_pair_shards._inventory_hash.cache_clear()
