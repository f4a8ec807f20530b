"""Tests of the shipped converter: size, some sentences, robustness."""

import math

import numpy as np
import pytest

from model_language.pinyin_to_hanzi import PinyinToHanzi
from model_language.registry import (
    load_converter,
    load_converter_with,
    load_joint_search,
    load_language_model,
)
from model_language.search import confusion_network_search
from model_language.vocabulary.symbols import Symbols
from utils.hypotheses.recognition import NOTHING, ConfusionNetwork, Slot
from utils.mandarin.pinyin import full_inventory, hanzi_to_pinyin
from utils.run_folder.run import PRETRAINED, PRETRAINED_LANGUAGE_MODEL

SENTENCES = (
    "我们明天上午九点在学校门口见面",
    "这家公司今年的营业收入增长了百分之二十",
    "请把客厅的灯关掉然后播放一首音乐",
    "专家认为气候变化对农业生产影响很大",
    "他从小就喜欢读历史书",
    "北京到上海的高铁只要四个半小时",
    "医生建议他多休息少喝酒",
    "记者昨天从有关部门了解到这一消息",
)


@pytest.fixture(scope="module")
def to_hanzi() -> PinyinToHanzi:
    return PinyinToHanzi()


def test_the_folder_is_at_most_21_megabytes():
    assert sum(path.stat().st_size for path in PRETRAINED.rglob("*") if path.is_file()) <= 21_000_000
    assert "licence" in (PRETRAINED / "README.md").read_text(encoding="utf-8")


def test_recognition_errors_are_corrected():
    """zh for z, a tone, n for ng."""
    to_hanzi = PinyinToHanzi(recognised=True)
    assert to_hanzi("wo3 men2 zai4 xue2 xiao4 men2 kou3 jian4 mian4") == "我们在学校门口见面"
    assert (
        to_hanzi("zhuan1 jia1 ren4 wei2 qi4 hou3 bian4 hua4 ying2 xiang3 hen3 da4")
        == "专家认为气候变化影响很大"
    )


def test_spaces_between_words_are_word_borders(to_hanzi):
    assert to_hanzi("women qu xi'an, hao ma?") == "我们去西安，好吗？"
    assert to_hanzi("women qu xi'an, haoma?") == "我们去西安，号码？"
    assert to_hanzi("yizhang") == "一张"
    assert to_hanzi("zhong guo renmin") == "中国人民"  # most syllables stand alone
    explained = to_hanzi.explain(["women qu xi'an, hao ma?"])[0]
    assert explained.text == "我们去西安，好吗？"


def test_invalid_input_has_a_defined_output(to_hanzi):
    assert to_hanzi.convert(["", "   ", "😀 123 xyzzy", "ni3 hao3 😀"]) == [
        "",
        "   ",
        "😀 123 xyzzy",
        "你好😀",
    ]
    assert len(to_hanzi("shi4 " * 1500)) == 1500


def test_every_typed_syllable_becomes_a_hanzi_with_this_reading(to_hanzi):
    lexicon = Symbols.load(PRETRAINED).lexicon
    typed = [syllable for syllable in full_inventory() if lexicon.nearest(syllable)]
    assert len(typed) > 2100
    wrong = {}
    for syllable, hanzi in zip(typed, to_hanzi.convert(typed), strict=True):
        erhua = syllable[:-1].endswith("r") and syllable[:-1] != "er"
        if hanzi[0] not in lexicon.candidates(syllable) or hanzi[1:] != ("儿" if erhua else ""):
            wrong[syllable] = hanzi
    assert not wrong
    assert to_hanzi("ei1") == to_hanzi.explain(["ei1"])[0].text == "诶"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("qing3 wen4 qu4 huo3 che zhan zen me zou3", "请问去火车站怎么走"),
        ("qing3 wen4 qu4 huo3 che1zhan zen3me zou3", "请问去火车站怎么走"),  # not read as a plain line
        ("guan1 jian ci2 jian3 ce4", "关键词检测"),
        ("wo3 de shu1 hen3 hao3", "我的书很好"),  # de5 is a reading
    ],
)
def test_a_syllable_without_a_tone_is_neutral_only_if_a_hanzi_is_read_so(to_hanzi, line, expected):
    assert to_hanzi(line) == to_hanzi.explain([line])[0].text == expected


def test_each_part_of_a_long_stretch_is_segmented(to_hanzi):
    beginning = "qinai de mama women mingtian qu tianjin jianguo lu canguan xuexiao"
    for line in (beginning, f"{beginning} xianzai jiu chufa fangan yijing jiejue"):
        text = to_hanzi(line)
        assert text.startswith("亲爱的妈妈我们明天去天津建国路参观学校")
        (found,) = to_hanzi.explain([line], n_best=3)
        assert found.text == text
        assert {len(way.hanzi) for way in found.n_best} == {len(found.sentences[0][0])}


def test_a_typed_syllable_without_hanzi_is_not_changed(to_hanzi):
    unread = to_hanzi.unread
    assert to_hanzi.convert(["cei1", "ni3 hao3 cei4, din1"]) == ["cei1", "你好cei4, din1"]
    assert to_hanzi.unread == unread + 3
    (found,) = to_hanzi.explain(["ni3 cei hao3"])
    assert (found.text, [word for word, _ in found.unread]) == ("你cei好", ["cei"])


def uncertain_network(sentence: str, seed: int) -> ConfusionNetwork:
    """A confusion network with the syllables of a sentence and others, some of them more probable."""
    rng = np.random.default_rng(seed)
    inventory = [*full_inventory(), NOTHING]
    slots = []
    for frame, syllable in enumerate(hanzi_to_pinyin(sentence)):
        others = [str(other) for other in rng.choice(inventory, 11, replace=False) if other != syllable]
        logs = np.log(rng.dirichlet([3.0, *[0.5] * len(others)]) + 1e-4)
        slots.append(Slot((syllable, *others), tuple(logs.tolist()), frame))
    return ConfusionNetwork(tuple(slots))


def test_preview_and_margin_of_the_joint_search_keep_the_best_conversions(to_hanzi, monkeypatch):
    search = load_joint_search(load_converter(PRETRAINED), None, 0.5, 3.0)
    networks = [uncertain_network(sentence, seed) for seed, sentence in enumerate(SENTENCES)]
    found = [hypotheses[0] for hypotheses in search.search(networks)]
    monkeypatch.setattr(confusion_network_search, "PREVIEWED", 10**6)
    monkeypatch.setattr(confusion_network_search, "MARGIN", math.inf)
    exact = [hypotheses[0] for hypotheses in search.search(networks)]
    assert [hypothesis.pinyin for hypothesis in found] == [hypothesis.pinyin for hypothesis in exact]
    assert [hypothesis.hanzi for hypothesis in found] == [hypothesis.hanzi for hypothesis in exact]
    assert all(
        math.isclose(left.score, right.score, abs_tol=1e-4) for left, right in zip(found, exact, strict=True)
    )


def test_the_preview_keeps_user_words(monkeypatch, tmp_path):
    """龘 is so rare that the preview alone would not keep it."""
    monkeypatch.setattr(confusion_network_search, "PREVIEWED", 1)
    (tmp_path / "words.txt").write_text("龘龘 da2 da2 30\n", encoding="utf-8")
    search = load_joint_search(load_converter_with(tmp_path / "words.txt", PRETRAINED), None, 0.5, 3.0)
    slots = [Slot(("da2", "da4"), (math.log(0.5), math.log(0.5)), frame) for frame in range(2)]
    ((hypothesis,),) = search.search([ConfusionNetwork(tuple(slots))])
    assert hypothesis.hanzi == "龘龘"


def test_the_language_model_prefers_what_is_written_to_what_sounds_alike():
    language_model = load_language_model(PRETRAINED_LANGUAGE_MODEL)
    alike = {"见面": "渐面", "收入": "收褥", "客厅": "客听", "气候": "汽后", "历史": "力使", "高铁": "高帖"}
    for sentence in SENTENCES:
        for word, other in alike.items():
            if word in sentence:
                right, wrong = language_model.log_probs([sentence, sentence.replace(word, other)])
                assert right.sum() > wrong.sum() + 3
    perplexity = math.exp(-np.concatenate(language_model.log_probs(SENTENCES)).mean())
    assert perplexity < 80  # of 9,000 hanzi


def test_a_user_word_with_a_rare_hanzi_and_several_conversions(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("塔 ta1 50", encoding="utf-8")
    explained = PinyinToHanzi(words=words).explain(["jin1 tian1", "ta1 hao3"], 3)
    assert [line.text for line in explained] == ["今天", "塔好"]
