"""Tests of text cleaning: golden cases, excluded text, properties, any number of workers."""

import gzip
import io
import json
import lzma
import os
import random
import signal
import sys
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.text import cleaning
from data.text.clauses import (
    ADDRESSES,
    FIGURES,
    LETTERS,
    LONG,
    REPEATED,
    SCRIPTS,
    SHORT,
    SYMBOLS,
    clauses,
    hanzi_of,
)
from data.text.cleaning import SEEN, clean_text, main, print_report
from data.text.deduplication import GRAM, index_sentences
from data.text.piece_cleaner import EVALUATION, NOT_UTF8
from data.text.pinyin_pairs import read_pairs
from data.text.sources import read_pieces
from utils.errors import CorpusError
from utils.mandarin.pinyin import is_hanzi


def usable(text: str, **limits) -> list[str]:
    return [clause.text for clause in clauses(text, **limits) if not clause.reason]


def reasons(text: str, **limits) -> list[str]:
    return [clause.reason for clause in clauses(text, **limits) if clause.reason]


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        ("今天天气很好，我们去公园吧！", ["今天天气很好", "我们去公园吧"]),
        ("他说：“你好。”", ["他说", "你好"]),
        ("約翰·史密斯（美國人）說：「頭髮乾了」。", ["约翰史密斯说", "头发干了", "美国人"]),
        ("一、加强管理；二、提高质量", ["加强管理", "提高质量"]),
        ("1.今天下雨", ["今天下雨"]),
        ("三、四个人", ["三四个人"]),
        ("苹果、梨、桃都好吃", ["苹果梨桃都好吃"]),
        ("有3、5个80、90后", ["有三五个八零九零后"]),
        ("看这里 https://t.cn/xx 很好玩", ["看这里", "很好玩"]),
        ("a@b.com 联系我", ["联系我"]),
        ("<p>你好<b>世界</b></p><script>x=1</script>再见&nbsp;朋友", ["你好世界", "再见", "朋友"]),
        ("今天 天气 很 好 ， 我们 去 公园 。", ["今天天气很好", "我们去公园"]),
        ("共 20 人 参加", ["共二十人参加"]),
        ("２０２６年１月５日", ["二零二六年一月五日"]),
        ("二〇二六年", ["二零二六年"]),
        ("——5个人", ["五个人"]),
        ("１½小时", ["一又二分之一小时"]),
        ("面积100㎡", ["面积一百平方米"]),
        ("😀你好👍🏽朋友", ["你好", "朋友"]),
        ("北京-上海", ["北京", "上海"]),
        ("5元/斤的苹果", ["五元每斤的苹果"]),
        ("#话题#讨论", ["话题", "讨论"]),
        ("①第一②第二", ["第一", "第二"]),
        ("a\x00b，你好\x00世界", ["你好", "世界"]),
        ("馀額 2,000 元", ["余额两千元"]),
        ("⼈民", ["人民"]),
        ("你\u200b好", ["你好"]),
        ("2024年1月1日—3日", ["二零二四年一月一日到三日"]),
        ("第一行\n第二行\r\n第三行", ["第一行", "第二行", "第三行"]),
        ("3·15晚会曝光了这些企业", ["三一五晚会曝光了这些企业"]),
        ("“9•11”事件发生后", ["九一一事件发生后"]),
        ("纪念5·12汶川地震", ["纪念五一二汶川地震"]),
        ("二○○八年和二〇〇九年", ["二零零八年和二零零九年"]),
        ("共有3，000人，都来了", ["共有三千人", "都来了"]),
        ("看著我們，著名的專著", ["看着我们", "著名的专著"]),
        ("妳說甚麼，牠們餓了", ["你说什么", "它们饿了"]),
        ("阿尔伯特·爱因斯坦", ["阿尔伯特爱因斯坦"]),
        ("……！？ ***", []),
        ("", []),
    ],
)
def test_lines_become_clauses(raw, lines):
    assert usable(raw) == lines


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("请访问https://a.com/b?c=1了解", ADDRESSES),
        ("iPhone手机", LETTERS),
        ("他有5G手机", LETTERS),
        ("比分是3-1", FIGURES),
        ("版本1.2.3", FIGURES),
        ("カタカナ日本", SCRIPTS),
        ("Привет你好", SCRIPTS),
        ("甲+乙", SYMBOLS),
        ("啊", SHORT),
        ("哈哈哈哈哈哈", REPEATED),
        ("长" + "这是一句没有停顿的话" * 5, LONG),
    ],
)
def test_rejected_clauses_have_a_reason(raw, reason):
    assert reasons(raw) == [reason]


def test_too_long_clauses_are_cut_at_their_pauses():
    assert usable("红苹果、黄香蕉、绿西瓜", longest=6) == ["红苹果黄香蕉", "绿西瓜"]
    assert usable("红苹果、黄香蕉、绿西瓜", longest=9) == ["红苹果黄香蕉绿西瓜"]
    assert reasons("红苹果、又大又甜的黄香蕉", longest=6) == [LONG]


_ODD = (
    "天地玄黃宇宙乾坤著了隻裡後发髮頭哈0123456789年月日，。：:-—~%℃.½²①、（）()“”·/ \n\t"
    "ａＡkg<b>&;@#😀か\x00\ue001\u200b"
)


@settings(max_examples=300)
@given(st.text(st.sampled_from(_ODD), max_size=40) | st.text(max_size=20))
def test_output_is_hanzi_and_cleaning_again_changes_nothing(text):
    for line in (once := [clause.text for clause in clauses(text, longest=12) if not clause.reason]):
        assert is_hanzi(line) and 2 <= len(line) <= 12
    again = list(clauses("\n".join(once), longest=12))
    assert [clause.text for clause in again] == once and not any(clause.reason for clause in again)


SENTENCE = "东北军的一些爱国将士马占山李杜也奋起抗战"
OTHER = "他仅凭腰部的力量在泳道上下翻腾"


def covered(text: str, *sentences: str) -> bool:
    return bool(index_sentences(sentences or [SENTENCE, OTHER]).covered(text).any())


def test_every_run_of_ten_is_found_and_nothing_else():
    for start in range(len(SENTENCE) - GRAM + 1):
        assert covered("前面" + SENTENCE[start : start + GRAM] + "后面")
    for start in range(len(SENTENCE) - GRAM + 2):
        assert not covered("前面" + SENTENCE[start : start + GRAM - 1] + "后面")
    assert not covered(SENTENCE[-5:] + OTHER[:5])  # runs don't extend across sentences
    assert not covered("") and not covered("短")


def test_short_sentences_are_found_whole():
    assert covered("他说回来就好了", "回来就好")
    assert not covered("回来就", "回来就好")
    short = index_sentences(["北京", "回来就好"])
    assert short.clauses == {"北京"} and not short.covered("在北京").any()
    assert list(np.flatnonzero(short.covered("他说回来就好了"))) == [2, 3, 4, 5]


def _raw_text(lines: int) -> str:
    """Lines of random clauses; evaluation text in every tenth, some figures, repeated lines."""
    rng = random.Random(7)
    hanzi = "我们今天去公园看花他说很好明天再来一起吃饭吧学习工作生活城市天气老师学生"
    made = []
    for number in range(lines):
        parts = ["".join(rng.choices(hanzi, k=rng.randint(1, 15))) for _ in range(rng.randint(1, 4))]
        if number % 10 == 0:
            cut = rng.randint(2, 9)
            parts.append(
                rng.choice([SENTENCE, "据说" + OTHER + "了", SENTENCE[:cut] + "，" + SENTENCE[cut:]])
            )
        parts.append(rng.choice(["", "", "共25%", "abc", "今天下雨"]))
        made.append("，".join(parts) + "。")
    return "\n".join(made) + "\n"


@pytest.fixture(scope="module")
def cleaned_twice(tmp_path_factory):
    """The same text cleaned by one and by two workers, in several pieces, and cleaned again."""
    folder = tmp_path_factory.mktemp("cleaning")
    raw = _raw_text(3000)
    half = raw.index("\n", len(raw) // 2) + 1
    (folder / "a.txt").write_text(raw[:half], encoding="utf-8")
    (folder / "b.txt.xz").write_bytes(lzma.compress(raw[half:].encode(), preset=0))
    (folder / "eval.tsv").write_text(
        f"x\t{' '.join(['ni3'] * len(SENTENCE))}\t{SENTENCE}\n", encoding="utf-8"
    )
    (folder / "eval.txt").write_text(OTHER[:7] + "，" + OTHER[7:] + "。\n", encoding="utf-8")
    settings = {"exclude": [folder / "eval.tsv", folder / "eval.txt"]}
    sources = [folder / "a.txt", folder / "b.txt.xz"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("data.text.sources.PIECE", 20_000)
        first = clean_text(sources, folder / "one.txt", workers=1, **settings)
        two = clean_text(sources, folder / "two.txt.xz", workers=2, **settings)
        again = clean_text([folder / "one.txt"], folder / "again.txt", **settings)
        assert len(list(read_pieces(folder / "b.txt.xz"))) > 3
    return folder, first, two, again


def test_workers_change_neither_content_nor_order_nor_counts(cleaned_twice):
    folder, first, second, _ = cleaned_twice
    assert (folder / "one.txt").read_bytes() == lzma.decompress((folder / "two.txt.xz").read_bytes())
    assert {**first, "seconds": 0} == {**second, "seconds": 0}


def test_no_evaluation_text_survives(cleaned_twice):
    folder, report, _, _ = cleaned_twice
    text = (folder / "one.txt").read_text(encoding="utf-8")
    for sentence in (SENTENCE, OTHER):
        assert not any(sentence[i : i + GRAM] in text for i in range(len(sentence) - GRAM + 1))
    assert report["rejected"][EVALUATION]["clauses"] >= 300
    assert SENTENCE in report["samples"][EVALUATION]
    # Both halves of a sentence that was cut by a comma are removed.
    lines = text.split("\n")
    assert not any(SENTENCE[:cut] in lines or SENTENCE[cut:] in lines for cut in range(2, 10))


def test_lines_are_distinct_hanzi_and_cleaning_again_changes_nothing(cleaned_twice):
    folder, report, _, again = cleaned_twice
    lines = (folder / "one.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(set(lines)) == report["kept"]["clauses"]
    assert all(map(is_hanzi, lines)) and "今天下雨" in lines and "共百分之二十五" in lines
    assert (folder / "again.txt").read_bytes() == (folder / "one.txt").read_bytes()
    assert again["rejected"] == {}


def test_every_rejected_clause_is_counted(cleaned_twice):
    folder, report, _, _ = cleaned_twice
    raw = lzma.decompress((folder / "b.txt.xz").read_bytes()).decode()
    raw = (folder / "a.txt").read_text(encoding="utf-8") + raw
    count = report["kept"]["clauses"] + sum(counts["clauses"] for counts in report["rejected"].values())
    assert count == sum(len(list(filter(None, line[:-1].split("，")))) for line in raw.splitlines())
    assert report["read"] == {"lines": 3000, "characters": len(raw)}
    assert json.loads((folder / "one.txt.report.json").read_text(encoding="utf-8")) == report
    assert set(report["rejected"]) == {EVALUATION, SEEN, SHORT, LETTERS} | (
        {REPEATED} & set(report["rejected"])
    )


def test_clauses_between_a_rejected_one_do_not_follow_each_other(tmp_path):
    (tmp_path / "e.txt").write_text(SENTENCE, encoding="utf-8")
    (tmp_path / "a.txt").write_text(
        f"{SENTENCE[:9]}，abc，{SENTENCE[9:18]}\n{SENTENCE[2:11]}", encoding="utf-8"
    )
    report = clean_text([tmp_path / "a.txt"], tmp_path / "o.txt", exclude=[tmp_path / "e.txt"])
    assert report["kept"]["clauses"] == 3


def test_standard_input(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO("你好，世界".encode())))
    assert main(["-", "--output", str(tmp_path / "o.txt"), "--workers", "1"]) == 0
    assert (tmp_path / "o.txt").read_text(encoding="utf-8") == "你好\n世界\n"
    assert "report.json" in capsys.readouterr().out
    assert len(read_pairs([tmp_path / "o.txt"])) == 2


def test_the_printed_examples_keep_their_brackets(capsys):
    counts = {"lines": 1, "clauses": 1, "characters": 4, "hanzi": 4}
    rejected, samples = {"letters": counts}, {"letters": ["[red]你好"]}
    print_report({"read": counts, "kept": counts, "seconds": 1, "rejected": rejected, "samples": samples})
    assert "[red]你好" in capsys.readouterr().out


def test_broken_lines_are_counted_and_other_encodings_refused(tmp_path):
    lines = ["你好朋友".encode()] * 30
    lines[7] = "你好".encode("gb18030")
    (tmp_path / "a.txt").write_bytes(b"\n".join(lines))
    report = clean_text([tmp_path / "a.txt"], tmp_path / "o.txt")
    assert report["rejected"][NOT_UTF8]["clauses"] == 1 and report["rejected"][SEEN]["clauses"] == 28
    (tmp_path / "g.txt").write_bytes("你好朋友\n".encode("gb18030") * 30)
    with pytest.raises(CorpusError, match=r"not UTF-8.*g\.txt.*iconv"):
        clean_text([tmp_path / "g.txt"], tmp_path / "o.txt")


@pytest.mark.parametrize(
    ("source", "content", "message"),
    [
        ("none.txt", None, "can't read"),
        ("a.txt.xz", b"no xz", "damaged"),
        ("a.txt.gz", gzip.compress(b"x" * 999, mtime=0)[:-9], "damaged"),
        ("a.txt.gz", b"no gzip", "damaged"),
        ("a.txt", b"abc\n", "no usable clause"),
        ("a.txt", b"", "no usable clause"),
    ],
)
def test_bad_sources_are_named_and_leave_no_output(tmp_path, source, content, message):
    if content is not None:
        (tmp_path / source).write_bytes(content)
    with pytest.raises(CorpusError, match=message) as caught:
        clean_text([tmp_path / source], tmp_path / "out" / "o.txt")
    assert source in str(caught.value)
    assert not list((tmp_path / "out").glob("*"))


def _die(piece: bytes) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_worker_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(cleaning, "clean_in_worker", _die)
    (tmp_path / "a.txt").write_text("你好世界", encoding="utf-8")
    with pytest.raises(CorpusError, match="worker process died"):
        clean_text([tmp_path / "a.txt"], tmp_path / "o.txt", workers=2)
    assert not (tmp_path / "o.txt").exists()


def test_evaluation_text_is_compared_as_it_is_cleaned():
    assert hanzi_of("馀额：２０００元（约）") == "余额两千元约"
