"""Tests of the lexicon: sources, order of preference, vocabularies built on it, files."""

import numpy as np
import pytest

from model_language.vocabulary.lexicon import UNREADABLE, Lexicon, build_lexicon, gb2312_hanzi
from model_language.vocabulary.symbols import PAD_ID, UNKNOWN_ID, Symbols, build_symbols
from utils.errors import RunError
from utils.vocabulary import UNKNOWN, language_vocabulary


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return build_lexicon()


@pytest.fixture(scope="module")
def symbols() -> Symbols:
    return build_symbols()


def test_gb2312_has_6763_distinct_hanzi_in_the_order_of_the_standard():
    hanzi = gb2312_hanzi()
    assert len(hanzi) == len(set(hanzi)) == 6763
    assert hanzi[0] == "啊" and hanzi[3754] == "座" and hanzi[3755] == "亍"  # 3,755 frequent hanzi come first


@pytest.mark.parametrize(
    ("syllable", "hanzi"),
    [
        ("zhong1", "中"),
        ("zhong4", "中"),
        ("hang2", "行"),
        ("xing2", "行"),
        ("lv4", "绿"),
        ("de5", "的"),
        ("xi5", "西"),
        ("yi4", "一"),
    ],
)
def test_heteronyms_neutral_tones_and_sandhi(lexicon, syllable, hanzi):
    assert hanzi in lexicon.candidates(syllable)


def test_order_of_preference():
    lexicon = Lexicon({"hua1": "花", "hua4": "画化", "qing3": "请", "nar4": "那"})
    assert lexicon.candidates("hua4") == ("化", "画")  # 1: its own hanzi
    assert lexicon.candidates("nar4") == ("那",)
    assert lexicon.candidates("huar1") == ("花",)  # 2: without erhua
    assert lexicon.candidates("qing5") == ("请",)  # 3: any tone
    assert lexicon.candidates("huar3") == ("化", "画", "花")  # 4: any tone, without erhua
    assert lexicon.candidates("er4") == ()  # the r of er is no erhua
    assert lexicon.candidates("hello") == lexicon.candidates(" ") == ()  # 5: nothing
    assert (lexicon.nearest("huar3"), lexicon.nearest("qing5"), lexicon.nearest("rua1")) == (
        "hua1",
        "qing3",
        None,
    )


def test_training_pairs_add_readings_and_hanzi(lexicon):
    taught = build_lexicon([(("di4", "huan2"), "的嬛"), (("rua4",), "挼")])
    assert "的" in taught.candidates("di4")
    assert "嬛" in taught.candidates("huan2") and "嬛" not in lexicon.hanzi
    assert lexicon.candidates("rua4") == () and taught.candidates("rua1") == ("挼",)


def test_lexicon_file_round_trip_and_damage(lexicon, tmp_path):
    path = tmp_path / "lexicon.tsv"
    lexicon.save(path)
    assert Lexicon.load(path) == lexicon
    assert path.read_text(encoding="utf-8").startswith("a1\t")
    path.write_text("a1\t啊\na2 嗄\n", encoding="utf-8")
    with pytest.raises(RunError, match=r"lexicon\.tsv:2"):
        Lexicon.load(path)
    with pytest.raises(RunError, match="missing"):
        Lexicon.load(tmp_path / "nothing.tsv")


def test_encoding_falls_back_to_similar_syllables():
    lexicon = Lexicon({"hua1": "花", "ni3": "你"})
    small = Symbols(language_vocabulary(lexicon.syllables), language_vocabulary(lexicon.hanzi), lexicon)
    assert small.pinyin.decode(small.encode(["ni3", "huar1", "ni5", "hello", ""])) == [
        "ni3",
        "hua1",
        "ni3",
        UNKNOWN,
        UNKNOWN,
    ]
    assert small.encode([]).shape == (0,)
    syllables, hanzi = small.encode_pair(("ni3", "ni3"), "你妳")
    assert small.hanzi.decode(hanzi) == ["你", UNKNOWN] and syllables.dtype == hanzi.dtype == np.int32
    assert small.decode([small.hanzi.index("花"), UNKNOWN_ID, PAD_ID]) == f"花{UNREADABLE}{UNREADABLE}"
