"""Tests of the statistics of recognition errors: counts by hand, and the probabilities they give."""

import numpy as np
import pytest

from analysis.errors.confusion_counts import aligned_syllables, main
from utils.errors import CorpusError
from utils.mandarin.confusion_statistics import (
    ConfusionStatistics,
    shipped_statistics,
)
from utils.mandarin.pinyin import full_inventory

SENTENCE = "zhong1 guo2 ren2 shuo1 zhong1 wen2 zan4 san1 min2 shan1 shi2 jin1 tian1 tian1 qi4 hen3 hao3 de5"
TEXT = SENTENCE.split()
# Spoken and recognised: zh–z 3 times, zh–ch once; an–ang 3 times, an–a once; tone 2–3 3 times, 2–4 once.
PLANTED = (
    *[("zhong1", "zong1")] * 3,
    ("zhong1", "chong1"),
    *[("shan1", "shang1")] * 3,
    ("shan1", "sha1"),
    *[("shi2", "shi3")] * 3,
    ("shi2", "shi4"),
    ("zhang1", "zan1"),
    *[("de5", None)] * 2,
    (None, "a5"),
)


@pytest.fixture(scope="module")
def planted() -> ConfusionStatistics:
    """Artificial statistics of texts with the same sentence 1000 times."""
    return ConfusionStatistics.count([*((syllable, syllable) for syllable in TEXT), *PLANTED], TEXT * 1000)


def test_counts_by_hand(planted):
    assert (planted.syllables, planted.deletions, planted.insertions) == (len(TEXT) + 15, 2, 1)
    assert planted.changes == {"initial": 4, "final": 4, "tone": 4, "initial+final": 1}
    assert planted.parts["initial"] == {("zh", "z"): 4, ("zh", "ch"): 1}
    assert planted.parts["final"] == {("an", "ang"): 3, ("an", "a"): 1, ("ang", "an"): 1}
    assert planted.parts["tone"] == {("2", "3"): 3, ("2", "4"): 1}
    assert planted.frequencies["zhong1"] == 2002 + 4
    assert planted.errors == 16
    assert planted.fractions["tone"] == 4 / 16
    assert sum(planted.fractions.values()) == pytest.approx(1)


@pytest.mark.parametrize("pairs", [[], [("ma1", "ma1")], [(None, "ma1")]])
def test_statistics_of_nothing_are_an_error(pairs):
    with pytest.raises(CorpusError, match="nothing to count"):
        ConfusionStatistics.count(pairs)


def test_saved_statistics_are_the_same(planted, tmp_path):
    planted.save(tmp_path / "noise.tsv", ["made up"])
    assert ConfusionStatistics.load(tmp_path / "noise.tsv") == planted
    assert (tmp_path / "noise.tsv").read_text().startswith("# made up\n")


@pytest.mark.parametrize(
    "line", ["", "ma1", "tone\t1\t2\tmany", "tone\t1\t2", "changed\tpitch\t-\t1", "speed\t-\t-\t1"]
)
def test_a_damaged_table_is_named_with_its_line(planted, tmp_path, line):
    planted.save(tmp_path / "noise.tsv")
    with (tmp_path / "noise.tsv").open("a") as file:
        file.write(f"{line}\n")
    lines = len((tmp_path / "noise.tsv").read_text().splitlines())
    with pytest.raises(CorpusError, match=rf"noise.tsv:{lines}"):
        ConfusionStatistics.load(tmp_path / "noise.tsv")


def test_the_probabilities_of_recognised_syllables():
    syllables = [*full_inventory(), "banr1"]
    matrix = shipped_statistics().matrix(syllables)
    assert matrix.shape == (len(syllables), len(full_inventory())) and matrix.dtype == np.float32
    np.testing.assert_allclose(matrix.sum(axis=1, dtype=np.float64), 1.0, atol=1e-5)
    own = np.arange(len(full_inventory()))
    assert not matrix[own, own].any()
    assert (matrix > 0).sum() == len(syllables) * len(full_inventory()) - len(
        own
    )  # errors that were never counted are possible


def test_counted_confusions_have_the_highest_probabilities(planted):
    """Counts decide between parts that are equally frequent."""
    names = full_inventory()
    recognised = dict(zip(names, planted.matrix(["zhang3"])[0].tolist(), strict=True))
    for more, less in (
        ("zang3", "chang3"),  # counted 4 : 1
        ("chang3", "sang3"),  # counted, not counted
        ("zhan3", "zhe3"),
        ("zhang4", "zhuan2"),  # one part, two
    ):
        assert recognised[more] > recognised[less], (more, less)
    shi = dict(zip(names, planted.matrix(["shi2"])[0].tolist(), strict=True))
    assert shi["shi3"] > shi["shi4"] > shi["shi5"]
    fan = dict(zip(names, planted.matrix(["fan1"])[0].tolist(), strict=True))
    assert fan["fang1"] > fan["fa1"] > fan["fu1"]  # never counted with this initial


def test_the_command_counts_hypotheses(tmp_path, capsys):
    file = tmp_path / "hypotheses.tsv"
    header = "id\treference_pinyin\tpinyin\treference_hanzi\thanzi\tsyllable_errors\thanzi_errors"
    file.write_text(
        f"{header}\na\tni3 hao3 ma5\tni2 hao3\t\t\t2\t0\nb\t\t\t\t\t0\t0\nc\tma1\tba1 chuang4\t\t\t2\t0\n"
    )
    assert list(aligned_syllables(file))[:3] == [("ni3", "ni2"), ("hao3", "hao3"), ("ma5", None)]
    main([str(file), str(file), "--output", str(tmp_path / "noise.tsv")])
    assert "8 errors among 8 syllables" in capsys.readouterr().out
    noise = ConfusionStatistics.load(tmp_path / "noise.tsv")
    assert (noise.deletions, noise.insertions) == (2, 2)
    assert noise.changes == {"initial": 2, "tone": 2}
    assert noise.parts["initial"] == {("m", "b"): 2}


@pytest.mark.parametrize("text", ["", "id text\n", "id\treference_pinyin\tpinyin\n"])
def test_another_file_is_refused(tmp_path, text):
    (tmp_path / "other.tsv").write_text(text)
    with pytest.raises(CorpusError, match=r"hypotheses\.tsv"):
        list(aligned_syllables(tmp_path / "other.tsv"))
