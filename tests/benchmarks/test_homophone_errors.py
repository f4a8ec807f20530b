"""Tests of benchmarks/analysis/homophone_errors.py: each class by hand, without the tagger."""

import pytest
from rich.console import Console

from benchmarks.analysis.homophone_errors import (
    CLASSES,
    CLASSICAL,
    FUNCTION,
    NAME,
    NO_HOMOPHONE,
    OTHER,
    RARE,
    HanziError,
    Word,
    as_table,
    class_of,
    errors_of,
    examples,
    is_classical,
)


@pytest.mark.parametrize(
    ("syllable", "written", "word", "classical", "kind"),
    [
        ("li3", "里", Word("李杜", "nr", 0), False, NAME),
        ("ju4", "据", Word("聚县", "ns", 99), False, NAME),
        ("yu4", "芋", Word("玉米", "nr", 1722), False, OTHER),  # a frequent word is not a name
        ("bu4", "不", Word("布其", "nr", 0), False, RARE),  # 其 does not occur in names
        ("ta1", "他", Word("她", "r", 134_035), False, FUNCTION),
        ("ye3", "野", Word("也", "d", 307_851), True, FUNCTION),
        ("an4", "按", Word("暗自", "d", 500), False, OTHER),  # an adverb of two hanzi
        ("de5", "的", Word("其地", "r", 0), False, RARE),  # in no dictionary
        ("shi2", "时", Word("茶食", "n", 3), True, RARE),
        ("pi1", "批", Word("披", "v", 1371), True, CLASSICAL),
        ("pi1", "批", Word("披", "v", 1371), False, OTHER),
        ("zhou4", "州", Word("胄", "nr", 5), True, NO_HOMOPHONE),
    ],
)
def test_the_first_rule_that_applies(syllable, written, word, classical, kind):
    assert class_of(syllable, written, word, classical) == kind


def test_classical_style():
    def words(text: str) -> list[Word]:
        return [Word(word, "x", 1000) for word in text.split()]

    assert is_classical(words("其 物 由 棉 而 纱"))
    assert not is_classical(words("其 物 由 棉 而 纱 的"))
    assert not is_classical(words("其中 而且 之")), "inside a modern word they are no evidence"


def test_errors_of_a_sentence():
    words = [Word("李杜", "nr", 0), Word("也", "d", 300_000), Word("来", "v", 9_000)]
    found = errors_of(["li3", "du4", "ye3", "lai2"], "李杜也来", "里度也来", words)
    assert found == [HanziError("李", "里", NAME, "李杜"), HanziError("杜", "度", NAME, "李杜")]
    assert examples(found * 2, 6) == "李→里 (李杜), 杜→度 (李杜)"


def test_the_table_has_every_class():
    found = {NAME: [HanziError("李", "里", NAME, "李杜")]}
    console = Console(width=120, record=True)
    console.print(as_table(found, 1, 4))
    text = console.export_text()
    assert "1 errors in 4 hanzi of 1 sentences: 25.00 %" in text and "100.0 %" in text
    assert all(kind in text for kind in CLASSES)
