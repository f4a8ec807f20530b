"""Tests of phrase files: texts with slots and pronunciations, and messages that name a bad line."""

import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recognition.phrases.grammar import parse_grammar, read_grammar
from recognition.phrases.phrase_list import Phrase, list_phrases, read_phrases
from recognition.phrases.pronunciation import MOST_PRONUNCIATIONS
from utils.errors import PhraseError
from utils.mandarin.pinyin import full_inventory


def _phrases(text: str) -> list[Phrase]:
    return list_phrases(parse_grammar(text, "list.txt"))


def _texts(text: str) -> list[str]:
    return [phrase.text for phrase in _phrases(text)]


def _ways(text: str) -> set[str]:
    (phrase,) = _phrases(text)
    return {" ".join(way) for way in phrase.pronunciations}


def test_lines_comments_and_spaces():
    assert _texts("# 命令\n\n关灯 # off\r\n  开灯\n\u3000停\u3000\r下一首") == [
        "关灯",
        "开灯",
        "停",
        "下一首",
    ]


def test_alternatives_and_optional_parts():
    assert _texts("打开[客厅|卧室]的灯") == ["打开客厅的灯", "打开卧室的灯"]
    assert _texts("(请)关灯") == ["请关灯", "关灯"]
    assert _texts("[请|麻烦|]关灯") == ["请关灯", "麻烦关灯", "关灯"]
    assert _texts("(请|麻烦)关灯") == ["请关灯", "麻烦关灯", "关灯"]
    assert _texts("开灯 | 关灯") == ["开灯", "关灯"]
    assert _texts("[开[大|小](一点)|关]灯") == ["开大一点灯", "开大灯", "开小一点灯", "开小灯", "关灯"]
    assert _texts("打开［客厅｜卧室］（的）灯")[:2] == ["打开客厅的灯", "打开客厅灯"]
    assert _texts("连接ＷｉＦｉ６") == ["连接WiFi6"]


def test_slots_with_lists_and_numbers():
    text = "<房间>调到<亮度:数字 9-10>\n<房间> = 客厅 | (主)卧室\n"
    found = [(phrase.text, phrase.slots, phrase.line) for phrase in _phrases(text)]
    assert found == [
        ("客厅调到九", {"房间": "客厅", "亮度": 9}, 1),
        ("客厅调到十", {"房间": "客厅", "亮度": 10}, 1),
        ("主卧室调到九", {"房间": "主卧室", "亮度": 9}, 1),
        ("主卧室调到十", {"房间": "主卧室", "亮度": 10}, 1),
        ("卧室调到九", {"房间": "卧室", "亮度": 9}, 1),
        ("卧室调到十", {"房间": "卧室", "亮度": 10}, 1),
    ]
    two = _phrases("<城市> = 北京 | 上海\n从<出发:城市>到<到达:城市>")
    assert two[1].slots == {"出发": "北京", "到达": "上海"}
    number = _phrases("调到<温度>度\n<温度> = <number 16-17>")
    assert [phrase.slots for phrase in number] == [
        {"温度": 16, "number": 16},
        {"温度": 17, "number": 17},
    ]
    inner = _phrases("关<设备>\n<设备> = 灯 | <房间>的灯\n<房间> = 客厅")
    assert [phrase.slots for phrase in inner] == [{"设备": "灯"}, {"设备": "客厅的灯", "房间": "客厅"}]


def test_numbers_have_all_their_readings():
    (two_hundred, five) = _phrases("<数字 200-200>\n<数字 105-105>")
    assert {"er4 bai3", "liang3 bai3", "er4 ling2 ling2"} <= {" ".join(w) for w in two_hundred.pronunciations}
    assert {"yi4 bai3 ling2 wu3", "yi1 bai3 ling2 wu3", "yao1 ling2 wu3"} <= {
        " ".join(way) for way in five.pronunciations
    }
    assert (two_hundred.text, two_hundred.slots) == ("二百", {"数字": 200})


def test_numbers_in_digits_stay_as_written():
    (phrase,) = _phrases("空调25度")
    assert phrase.text == "空调25度"
    assert "kong1 tiao2 er4 shi2 wu3 du4" in {" ".join(way) for way in phrase.pronunciations}
    assert "liang3 bai3 du4" in _ways("200度")
    assert "er4 ling2 er4 si4 nian2" in _ways("2024年")
    assert {"ling2 ling2 qi1"} == _ways("007")
    assert "bai3 fen1 zhi1 shi2" in _ways("10%")


def test_pronunciations_by_context_polyphones_and_sandhi():
    assert _ways("银行") == {"yin2 hang2"}
    assert _ways("重庆") == {"chong2 qing4"}
    assert {"xing2", "hang2"} <= _ways("行")
    assert _ways("你好") == {"ni3 hao3", "ni2 hao3"}
    assert {"bu2 dui4"} <= _ways("不对")
    assert _ways("你好,小书童!") == {"ni3 hao3 xiao3 shu1 tong2", "ni2 hao3 xiao3 shu1 tong2"}


def test_pronunciations_of_the_user():
    assert _ways("重阳路 = zhong4 yang2 lu4\n去重阳路") == {"qu4 zhong4 yang2 lu4"}
    assert _ways("去重阳路\nWiFi = wai1 fei4\n重阳 = zhong4 yang2") == {"qu4 zhong4 yang2 lu4"}
    assert _ways("WiFi = wai1 fei4\nWiFi = wei1 fēi\n打开WiFi") == {
        "da3 kai1 wai1 fei4",
        "da3 kai1 wei1 fei1",
    }
    assert _ways("曾\tzeng1") == {"zeng1"}
    assert _ways("曾\tzeng1\n曾\tceng2") == {"zeng1", "ceng2"}
    assert _ways("你好\tni3 hao3") == {"ni3 hao3", "ni2 hao3"}
    assert len(_ways("妈\tma")) == 5
    assert _ways("5G = wu3 ji4\n打开5G") == {"da3 kai1 wu3 ji4"}


def test_the_example_of_the_documentation():
    page = (Path(__file__).parents[2] / "docs" / "phrases.md").read_text(encoding="utf-8")
    (example,) = (block for block in re.findall("```\n(.*?)```", page, re.DOTALL) if "<房间> =" in block)
    phrases = {phrase.text: phrase for phrase in _phrases(example)}
    assert len(phrases) == 2 + 2 + 4 * 101 + 4 + 1 + 1
    assert phrases["主卧的灯调到一百"].slots == {"房间": "主卧", "亮度": 100}
    assert phrases["从上海到北京"].slots == {"出发": "上海", "到达": "北京"}
    assert phrases["曾强"].pronunciations[0] == ("zeng1", "qiang2")


def test_a_word_across_a_slot_has_its_pronunciation():
    (phrase,) = _phrases("去<城市>路\n<城市> = 重阳\n重阳路 = zhong4 yang2 lu4")
    assert phrase.pronunciations == (("qu4", "zhong4", "yang2", "lu4"),)


def _chain(length: int, item: str) -> str:
    """Lists of which each refers to the one before it, and a phrase."""
    lines = [f"<l{number + 1}> = {item.format(number)}" for number in range(length)]
    return "\n".join(["<l0> = 灯", *lines, f"<l{length}>"])


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ("关灯\n打开[客厅的灯", 2, r"'\[' is not closed by '\]'", "one phrase a line"),
        ("打开客厅]的灯", 1, r"'\]' closes nothing", "one phrase a line"),
        ("(关灯]", 1, r"'\(' is not closed by '\)'", "one phrase a line"),
        ("(" * 30 + "灯" + ")" * 30, 1, "more than 20 brackets", "one phrase a line"),
        ("打开<房间", 1, "'<' needs a name and '>'", "one phrase a line"),
        ("打开<>", 1, "'<' needs a name", "one phrase a line"),
        ("打开<房!间>", 1, "is not the name of a slot", "<房间>"),
        ("打开<房间>的灯\n<房> = 客厅", 1, "list <房间> is unknown", "did you mean <房>"),
        ("打开<房间>的灯", 1, "list <房间> is unknown", "define it"),
        ("关<房间>\n<房间> = 客厅\n<房间> = 卧室", 3, "defined twice", "all items in one line"),
        ("关<甲>\n<甲> = 灯|<乙>\n<乙> = <甲>", 2, "<乙> contains itself", "can't contain itself"),
        ("<城市>到<城市>\n<城市> = 北京", 1, "stands twice", "<a:城市>"),
        ("<数字 5-2>", 1, "range 5-2 is empty", "one phrase a line"),
        ("<数字 0-999999999>", 1, "range 0-999999999 is empty or above", "one phrase a line"),
        ("<数字>", 1, "<数字> has no range", "<数字 0-100>"),
        (f"<数字 0-{'9' * 5000}>", 1, "is not the name of a slot", "<数字 0-100>"),
        (_chain(300, "<l{0}>"), 21, "more than 20 lists inside each other", "in one list"),
        ("灯\n<数字> = 一", 2, "reserved for numbers", "another name"),
        ("<数字 0-90000><number 0-90000>", 1, "more than 100,000 phrases", "fewer alternatives"),
        ("(请)", 1, "may be empty", "at least one part"),
        ("灯\n，！", 2, "'，！' has no syllable", "in hanzi"),
        ("打开Kubernetes", 1, "pronunciation of 'Kubernetes' is unknown", "Kubernetes = …"),
        ("关灯\n开灯 kai1 deng1", 2, "pronunciation of 'kai' is unknown", "write a tab, not a space"),
        ("打开WiFi\nWiFi = wai1 fai4", 2, "'WiFi' has no valid pinyin: 'fai4'", "zhong1"),
        ("灯\n重庆 = chong2", 2, "'重庆' has 2 hanzi but 1 syllables", "one syllable for each"),
        ("灯\n重庆 = ", 2, "'重庆' has no pinyin", "chong2 qing4"),
        ("灯\n = deng1", 2, "neither a word nor a list", "a word and its pinyin"),
        ("灯\n<房间 = 客厅", 2, "not the definition of a list", "<房间> = 客厅"),
        ("灯\n<房间> =", 2, "not the definition of a list", "<房间> = 客厅"),
        ("[开|关]灯\tkai1 deng1", 1, "pinyin beside a phrase with a grammar", "in a line of its own"),
        ("重庆\tchong2", 1, "2 hanzi but 1 syllables", "one syllable for each"),
        ("𰻝𰻝面\U000323af", 1, "no Mandarin reading", "give the pronunciation"),
        ("开灯a=b=c", 1, "'开灯a' has no valid pinyin", "zhong1"),
    ],
)
def test_a_wrong_line_is_named(text: str, line: int, message: str, hint: str):
    with pytest.raises(PhraseError, match=message) as caught:
        _phrases(text)
    assert caught.value.where == f"list.txt:{line}"
    assert hint in caught.value.hint


def test_syllables_without_a_tone_have_any():
    (phrase,) = _phrases("你好小明\tni hao xiao ming")
    assert {("ni3", "hao3", "xiao3", "ming2"), ("ni5", "hao1", "xiao4", "ming3")} <= set(
        phrase.pronunciations
    )
    assert len(phrase.pronunciations) == 5**4
    with pytest.raises(PhraseError, match="has 5 syllables without a tone, more than 4"):
        _phrases("你好小明明\tni hao xiao ming ming")


def test_all_readings_of_several_numbers_are_limited_together():
    (phrase,) = _phrases("从2200到2200到2200到2200")
    assert len(phrase.pronunciations) == MOST_PRONUNCIATIONS
    assert len({len(way) for way in phrase.pronunciations}) > 1, "several readings of the numbers"


def test_lists_that_refer_twice_to_others_are_counted_at_once():
    with pytest.raises(PhraseError, match="more than 100,000 phrases with this line, which allows 524,288"):
        _phrases(_chain(19, "<l{0}>|<l{0}>"))
    with pytest.raises(PhraseError, match="more than 100,000 phrases"):
        _phrases(_chain(19, "<l{0}>|<l{0}>|<l{0}>|<l{0}>|<l{0}>|<l{0}>|<l{0}>|<l{0}>"))


@pytest.mark.parametrize("text", ["", "# nothing\n\n", "<房间> = 客厅", "重庆 = chong2 qing4"])
def test_a_file_without_phrases_is_refused(text: str):
    with pytest.raises(PhraseError, match="no phrase in the file"):
        _phrases(text)


def test_files_are_read_with_their_names(tmp_path: Path):
    path = tmp_path / "phrases.txt"
    path.write_bytes("\ufeff关灯\r\n打开[灯".encode())
    with pytest.raises(PhraseError, match=r"phrases\.txt:2"):
        read_phrases(path)
    path.write_bytes("关灯".encode("gbk"))
    with pytest.raises(PhraseError, match=r"not UTF-8.*phrases\.txt"):
        read_grammar(path)
    with pytest.raises(PhraseError, match=r"cannot read.*none\.txt"):
        read_phrases(tmp_path / "none.txt")


PARTS = st.sampled_from(
    [
        *(
            "打开",
            "灯",
            "[",
            "]",
            "(",
            ")",
            "|",
            "<房间>",
            "<数字 0-12>",
            "<",
            ">",
            "=",
            "\t",
            "ni3",
            "#",
            "\n",
        ),
        *("行", "<房间> = 客厅 | 卧室\n", "WiFi", "25", "，", " ", "\u0000", "＜", "〇", "é", "😀"),
    ]
)


@settings(max_examples=200)
@given(st.one_of(st.lists(PARTS, max_size=20).map("".join), st.text(max_size=40)))
@example("关<房间>\n<房间> = 客厅 | 卧室\n")
def test_any_text_gives_phrases_or_a_named_error(text: str):
    try:
        phrases = _phrases(text)
    except PhraseError as error:
        assert str(error.where).startswith("list.txt") and error.hint
        return
    inventory = set(full_inventory())
    assert phrases
    for phrase in phrases:
        assert phrase.text == phrase.text.strip() != ""
        assert phrase.pronunciations and all(phrase.pronunciations)
        assert all(inventory.issuperset(way) or "r" in "".join(way) for way in phrase.pronunciations)
