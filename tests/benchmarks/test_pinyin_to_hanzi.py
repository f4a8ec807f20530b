"""Tests of benchmarks/model_language/pinyin_to_hanzi.py: conditions, error rates, process protocol, table.

A fake converter with a fixed table is used, so no other converter is needed.
"""

import sys
from pathlib import Path

import pytest

from benchmarks.converters.entry import Command, Entry
from benchmarks.model_language import pinyin_to_hanzi
from benchmarks.peers.environment import Missing
from benchmarks.peers.process import PeerProcess
from benchmarks.support.converter_scores import error_rates
from benchmarks.support.pinyin_sentences import (
    AISHELL,
    NOISY,
    THCHS,
    TONED,
    TONELESS,
    read_conditions,
)
from benchmarks.support.tables import END
from utils.errors import RunError
from utils.mandarin.pinyin import full_inventory
from utils.metrics import count_errors, total

TEXTS = {
    "thchs_test.tsv": "a\tni3 hao3\t你好\nb\tni3 hao3\t你好\nc\tta1 de\t她的\n",
    "aishell_dev.tsv": "d\tzhong1 guo2 ren2\t中国人\ne\tlv4 se4\t绿色\n",
}
# Converts "zhong1" to 种 in any context, and drops syllables that are not in this table.
FAKE = """
import sys
known = {"ni": "你", "hao": "好", "ta": "他", "de": "的", "zhong": "种", "guo": "国", "ren": "人", "se": "色"}
for line in sys.stdin:
    if not line.strip():
        sys.stdout.flush()
        continue
    print("".join(known.get(word, "") for word in line.split()))
"""


@pytest.fixture
def transcripts(tmp_path: Path) -> Path:
    folder = tmp_path / "transcripts"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def fake(name: str = "fake", tones: bool = False) -> Entry:
    return Entry(name, "none", lambda _: Command((sys.executable, "-c", FAKE), "1.0", 2_000_000), tones=tones)


def absent(_: Path) -> Command:
    raise Missing("nothing is installed: pip install something")


def test_conditions(transcripts):
    found = {(condition.test_set, condition.given): condition for condition in read_conditions(transcripts)}
    assert len(found) == 6
    toned = found[THCHS, TONED]
    assert toned.pinyin == (("ni3", "hao3"), ("ni3", "hao3"), ("ta1", "de5"))
    assert toned.hanzi == ("你好", "你好", "她的")
    assert found[THCHS, TONELESS].pinyin[2] == ("ta", "de")
    assert found[AISHELL, TONELESS].pinyin == (("zhong", "guo", "ren"), ("lv", "se"))
    assert found[AISHELL, NOISY].hanzi == found[AISHELL, TONED].hanzi


def test_a_tenth_of_the_syllables_is_wrong(tmp_path):
    syllables = [syllable for syllable in full_inventory() if syllable[-2] != "r"][::7] * 20
    row = "x{}\t" + " ".join(syllables) + "\t" + "字" * len(syllables) + "\n"
    for name in TEXTS:
        (tmp_path / name).write_text("".join(row.format(i) for i in range(4)), encoding="utf-8")
    toned, _, noisy = read_conditions(tmp_path)[:3]
    assert (toned.given, noisy.given) == (TONED, NOISY)
    assert 0.08 < total(map(count_errors, toned.pinyin, noisy.pinyin)).rate < 0.12
    assert noisy.pinyin == read_conditions(tmp_path)[2].pinyin


def test_error_rates_of_a_process(transcripts):
    conditions, entry = read_conditions(transcripts), fake()
    rates = error_rates(entry, entry.find(Path()), conditions)
    found = {(each.test_set, each.given): rate for each, rate in zip(conditions, rates, strict=True)}
    # 她 of two lines' six hanzi; 中 and 绿 of five.
    assert found[THCHS, TONED] == pytest.approx(1 / 6)
    assert found[AISHELL, TONED] == found[AISHELL, TONELESS] == pytest.approx(2 / 5)


def test_more_than_a_pipe_holds():
    command = fake().find(Path())
    with PeerProcess("fake", command.arguments) as process:
        answers = process.answers([*["ni hao"] * 30_000, "", "ta de"])
        assert process.peak_memory() > 1 << 20
    assert answers == [*["你好"] * 30_000, "", "他的"]


def test_a_process_that_ends_early_is_reported_with_its_error():
    code = "import sys; sys.exit('no dictionary')"
    with (
        PeerProcess("broken", (sys.executable, "-c", code)) as process,
        pytest.raises(RunError, match=r"'broken' has ended \(no dictionary\)"),
    ):
        process.answers(["ni hao"])


def test_command(transcripts, tmp_path, monkeypatch, capsys):
    others = (fake("quick"), fake("other", tones=True), Entry("gone", "none", absent))
    monkeypatch.setattr(pinyin_to_hanzi, "OTHERS", others)
    document = tmp_path / "page.md"
    mark = "<!-- figures of benchmarks.model_language.pinyin_to_hanzi -->"
    document.write_text(f"# Title\n\n{mark}\nold\n{END}\nMore.\n", encoding="utf-8")
    arguments = ["--transcripts", str(transcripts), "--model", str(tmp_path / "no_run")]
    pinyin_to_hanzi.main([*arguments, "--markdown", str(document)])
    shown = capsys.readouterr()
    assert "skipped: gone: nothing is installed" in shown.err and "skipped: ours: " in shown.err
    assert [line.split()[0] for line in shown.out.splitlines()[1:3]] == ["quick", "other"]
    text = document.read_text(encoding="utf-8")
    assert "| quick | 16.67° | 16.67 |" in text and "| other | 16.67 | 16.67 |" in text
    assert text.startswith(f"# Title\n\n{mark}\n|") and text.endswith(f"{END}\nMore.\n")
    assert "old" not in text
