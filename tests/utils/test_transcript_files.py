"""Tests of the files that a report reads: CTM, TRN, subtitles, tables, JSON, folders; refused files."""

import json
from pathlib import Path

import pytest

from analysis.inputs.text_files import read_text_file
from analysis.inputs.utterance_results import HANZI, OUTPUT, SYLLABLES
from analysis.page.report import write_report_page
from analysis.report import report_files
from analysis.results.terminal import results_text
from utils.errors import CorpusError
from utils.hypotheses.recognition import Alternative, Ending, Recognition
from utils.hypotheses.transcript_formats import FORMATS, as_json_line

CTM = """\
;; of a recogniser
a1 1 0.90 0.20 天气 0.9
a1 1 0.10 0.30 今天 0.8
a1 1 1.20 0.10 <ALT_BEGIN>
a1 1 1.20 0.10 很
a1 1 * * <ALT>
a1 1 1.20 0.10 真
a1 1 * * <ALT_END>
a1 1 1.40 0.20 @ 0.1
a1 1 1.60 0.20 坏
a2 1 0.00 0.30 我们
a2 1 0.40 0.30 去
"""
REFERENCE = "a1 今天天气很好\na2 我们去银行\n"


def write(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def texts(path: Path) -> dict[str, str]:
    return {name: line.hanzi for name, line in read_text_file(path).lines.items()}


def rate(reference: Path, hypothesis: Path, name: str = "hanzi error"):
    facts = report_files(reference, [hypothesis])
    return next(rate for rate in facts.systems[0].rates if rate.name == name).counts, facts


def test_ctm_words_are_joined_by_recording_in_the_order_of_their_times(tmp_path):
    hypothesis = write(tmp_path / "hyp.ctm", CTM)
    assert texts(hypothesis) == {"a1": "今天 天气 很 坏", "a2": "我们 去"}
    counts, facts = rate(write(tmp_path / "ref", REFERENCE), hypothesis)
    assert (counts.errors, counts.reference) == (1 + 2, 6 + 5)
    (problem,) = facts.problems
    assert (problem.description, problem.examples) == ("alternatives beside the first", ("a1",))


def test_trn_as_reference_and_hypothesis(tmp_path):
    reference = write(
        tmp_path / "ref.trn", "今天 天气 很 好 (a1)\n我们 { 去 / 取 { 了 / 过 } / @ } 银行 (a2)\n"
    )
    hypothesis = write(tmp_path / "hyp.trn", "今天天气很坏 (a1)\n(a2)\n")
    assert texts(reference) == {"a1": "今天 天气 很 好", "a2": "我们 去 银行"}
    counts, _ = rate(reference, hypothesis)
    assert (counts.errors, counts.deletions, counts.reference) == (1 + 5, 5, 6 + 5)


@pytest.mark.parametrize(
    ("name", "header", "mark"), [("a1.srt", "", ","), ("a1.vtt", "WEBVTT\n\nNOTE x\n\n", ".")]
)
def test_subtitles_are_one_recording(tmp_path, name, header, mark):
    cues = "1\n00:00:00,500 --> 00:00:01,000\n今天<i>天气</i>\n\n2\n00:00:02,000 --> 00:00:03,000\n很好\n7\n"
    assert texts(write(tmp_path / name, header + cues.replace(",", mark))) == {"a1": "今天天气 很好 7"}


def test_times_that_whisper_prints_before_each_line_are_no_text(tmp_path):
    printed = "[00:00.000 --> 00:01.000]  今天天气\n[01:00:01.000 --> 01:00:02.000]  很好\n"
    write(tmp_path / "a1.txt", printed)
    assert texts(tmp_path / "a1.txt") == texts(tmp_path) == {"a1": "今天天气 很好"}


def test_names_and_notes_of_cues_are_no_text(tmp_path):
    """Meeting programs give each cue of WebVTT a name that is no number."""
    cue = "{0}\n00:00:0{1}.000 --> 00:00:0{2}.000\n<v 张三>{3}</v>\n\n"
    content = "WEBVTT\n\nSTYLE\n::cue { color: red }\n\n"
    content += cue.format("0f7d8b1e-11/1-0", 0, 1, "今天天气") + cue.format("开场", 1, 2, "很好\n12")
    content += "NOTE reviewed\n一个说明\n\n" + cue.format("3", 2, 3, "我们去")
    assert texts(write(tmp_path / "talk.vtt", content)) == {"talk": "今天天气 很好 12 我们去"}


def test_the_times_of_words_are_no_text(tmp_path):
    """Automatic captions have a time before each word."""
    cue = "00:00:00.000 --> 00:00:02.000 align:start position:0%\n"
    cue += "今天<00:00:00.400><c>天气</c><00:00.900><c>很好</c>\n"
    assert texts(write(tmp_path / "talk.vtt", f"WEBVTT\nKind: captions\n\n{cue}")) == {"talk": "今天天气很好"}


EVENTS = [
    Recognition(0.0, 1.0, ((0.1, 0.3), (0.4, 0.6)), (Alternative(("ni3", "hao3"), "你好", -1.0),)),
    Ending(1.0),
]


def test_lines_of_captions_that_scroll_come_once(tmp_path):
    cues = (
        " \n今天<00:00:01.500><c>天气</c>",
        "今天天气\n ",
        "今天天气\n很<00:00:03.100><c>好</c>",
        "很好\n ",
        "很好\n很<00:00:04.100><c>好</c>",
    )
    timed = (f"00:00:0{n}.000 --> 00:00:0{n + 1}.000\n{cue}\n\n" for n, cue in enumerate(cues, 1))
    path = write(tmp_path / "talk.vtt", "WEBVTT\n\n" + "".join(timed))
    assert texts(path)["talk"].split() == ["今天天气", "很好", "很好"]


def test_numbers_of_cues_are_no_text(tmp_path):
    """Blank lines between all lines, a missing number, a cue without text, a time without its start."""
    cues = ["1", "00:00:01,000 --> 00:00:02,000", "今天", "00:00:02,000 --> 00:00:03,000", "天气", "3"]
    cues += [
        "00:00:04,000 --> 00:00:05,000",
        "4",
        "--> 00:00:06,000",
        "12很好",
        "5",
        "00:00:07 --> 00:00:08",
        "6",
    ]
    for separator in ("\n", "\n\n", "\n \n"):
        assert texts(write(tmp_path / "talk.srt", separator.join(cues))) == {"talk": "今天 天气 12很好 6"}


def test_markup_of_subtitles_is_no_text(tmp_path):
    cue = "1\n00:00:01,000 --> 00:00:02,000\n"
    content = "{\\an8}<FONT color=red>今天</FONT>&nbsp;天气\u200b{\\i1}很好&amp;&lt;7"
    assert texts(write(tmp_path / "talk.srt", cue + content))["talk"].split() == ["今天", "天气很好&<7"]


ASS = """\
[Script Info]
Title: x: y

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:00:03.50,0:00:06.00,Default,,0,0,0,,我们去,银行
Comment: 0,0:00:02.00,0:00:03.00,Default,,0,0,0,,一个说明
Dialogue: 0,0:00:01.00,0:00:03.00,Default,,0,0,0,,{\\an8}今天\\N天气
Dialogue: 1,0:00:01.00,0:00:03.00,Default,,0,0,0,,{\\pos(0,0)\\p1}m 0 0 l 9 0{\\p0}
"""
LRC = "[ti:歌]\n[作词:张三]\n[00:03.50]我们去,银行\n[00:01.00]今天<00:01.50><0:01.6>\n天气\n"
WHISPER_TABLE = "start\tend\ttext\n1000\t2500\t今天 天气\n3500\t6000\t我们去,银行\n"
WHISPER_CPP = '{"transcription": [{"text": "今天 天气"}, {"offsets": {"from": 3500}, "text": "我们去,银行"}]}'
TTML = """\
<?xml version="1.0" encoding="UTF-8"?>
<tt xmlns="http://www.w3.org/ns/ttml"><head><metadata>x</metadata></head><body><div>
<p begin="00:00:01:12">今天<br/><span>天气</span></p>
<p>我们去,银行</p></div></body></tt>
"""


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.ass", ASS),
        ("a.lrc", LRC),
        ("a.ttml", TTML),
        ("a.tsv", WHISPER_TABLE),
        ("a.json", WHISPER_CPP),
    ],
)
def test_other_subtitles_are_read_in_the_order_of_their_times(tmp_path, name, content):
    assert texts(write(tmp_path / name, content))["a"].split() == ["今天", "天气", "我们去,银行"]


def test_a_line_of_a_song_with_several_times_comes_several_times(tmp_path):
    content = "[00:01.00][00:09.00]今天\n[00:05.00]天气\n"
    assert texts(write(tmp_path / "a.lrc", content)) == {"a": "今天 天气 今天"}


def test_two_files_of_subtitles_need_no_common_name(tmp_path):
    cue = "1\n00:00:01 --> 00:00:02\n"
    counts, _ = rate(write(tmp_path / "true.srt", cue + "今天"), write(tmp_path / "out.srt", cue + "今年"))
    assert (counts.errors, counts.reference) == (1, 2)


def test_tags_of_recognisers_are_left_out_with_a_remark(tmp_path):
    content = "a1 <|zh|><|HAPPY|><|BGM|><|woitn|>今天天气很坏\na2 我们去银行\n"
    counts, facts = rate(write(tmp_path / "ref", REFERENCE), write(tmp_path / "hyp", content))
    assert (counts.errors, counts.reference) == (1, 11)
    assert [(each.examples, each.is_harmless) for each in facts.problems] == [(("a1",), True)]
    page = write_report_page(tmp_path / "out", facts).read_text(encoding="utf-8")
    assert "<h2>Problems of the files" not in page
    assert page.index("<h2>Remarks on the files") > page.index("Hanzi error")


@pytest.mark.parametrize(
    "content",
    [
        "id\taudio\tseconds\tspeaker\tpinyin\thanzi\nx\tc/u1.wav\t1\ts\t\t你好\ny\tc/u2.wav\t1\ts\t\t您好\n",
        "id\taudio\thanzi\nx\tc/u1.wav\t你好\ny\tc/u2.wav\t您好\n",
        "x\tc/u1.wav\t你好\ny\tc/u2.wav\t您好\n",
        "u1\tni3 hao3\t你好\nu2\tnin2 hao3\t您好\n",
        "path,sentence\nu1.mp3,你好\nu2.mp3,您好\n",
        "UtteranceID\tSpeakerID\tTranscription\nu1.wav\ts\t你好\nu2.wav\ts\t您好\n",
        "c/u1.wav 你好\nc/u2.wav 您好\n",
        '{"key": "u1", "wav": "a", "txt": "你好"}\n{"key": "u2", "wav": "b", "txt": "您好"}\n',
        '{"audio_filepath": "/c/u1.wav", "duration": 1, "text": "你好", "pred_text": "好"}\n'
        '{"audio_filepath": "/c/u2.wav", "duration": 1, "text": "您好", "pred_text": "好"}\n',
        "id\treference_pinyin\tpinyin\treference_hanzi\thanzi\n"
        "u1\tni3 hao3\tni3\t你好\t你\nu2\tnin2 hao3\tnin2\t您好\t您\n",
    ],
)
def test_a_folder_of_transcribe_against_references_of_many_kinds(tmp_path, content):
    reference = write(tmp_path / "test.tsv", content)
    for form in ("json", "srt", "text"):
        folder = tmp_path / form / "c"
        folder.mkdir(parents=True)
        for name in ("u1", "u2"):
            text = "".join(FORMATS[form].write(f"/data/c/{name}.wav", EVENTS))
            write(folder / f"{name}{FORMATS[form].suffix}", text)
        write(folder.parent / ".transcribed.jsonl", "no transcript\n")
        counts, facts = rate(reference, folder.parent)
        assert (counts.errors, counts.reference) == (1, 4), form
        assert all(problem.is_harmless for problem in facts.problems)


def test_a_list_of_nemo_has_both_sides(tmp_path):
    line = '{"audio_filepath": "u1.wav", "text": "你好", "pred_text": "您好"}\n'
    (tmp_path / "copy").mkdir()
    counts, _ = rate(write(tmp_path / "x.json", line), write(tmp_path / "copy" / "x.json", line))
    assert (counts.errors, counts.reference) == (1, 2)


@pytest.mark.parametrize("form", ["json", "srt"])
def test_output_of_transcribe_is_read(tmp_path, form):
    """The JSON names recordings by their paths, the reference by their ids."""
    path = write(tmp_path / f"u1.{form}", "".join(FORMATS[form].write("clips/u1.wav", EVENTS)))
    counts, facts = rate(write(tmp_path / "ref", "u1 你号\n"), path)
    assert (counts.errors, counts.reference) == (1, 2)
    assert facts.levels == (SYLLABLES, HANZI)
    system = facts.systems[0]
    assert (OUTPUT in system.automatic_pinyin) == (form == "srt"), "JSON also has the syllables"


def test_json_lines_are_read(tmp_path):
    lines = "".join("".join(as_json_line(f"clips/{name}.wav", EVENTS)) for name in ("u1", "u2"))
    counts, facts = rate(write(tmp_path / "ref", "u1 你好\nu2 您好\n"), write(tmp_path / "hyp.jsonl", lines))
    assert (counts.errors, counts.reference) == (1, 4)
    (problem,) = facts.problems
    assert problem.is_harmless and problem.count == 2
    printed = results_text(facts)
    assert printed.index("remarks on the files") > printed.index("hanzi error")
    others = [{"key": "u1", "text": "你好"}, {"key": "u2", "text": "您"}]
    counts, _ = rate(tmp_path / "ref", write(tmp_path / "other.json", json.dumps(others)))
    assert (counts.errors, counts.reference) == (1, 4)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "results.json",
            '{"task": "speech", "split": "test"}',
            r"results\.json of test\.py.*hypotheses\.tsv",
        ),
        ("report.json", '{"version": 1, "systems": []}', r"JSON of a report"),
        ("x.json", '[{"pinyin": "ni3"}, {"pinyin": "hao3"}]', "object 1 of this JSON has no id"),
        ("x.json", '{"id": "a"}', "object 1 of this JSON has no text"),
        ("x.json", '{"id": 5, "text": 5}', "'text' of object 1 of this JSON is not a text"),
        ("x.json", '{"id": ', "this is not JSON"),
        ("x.stm", "a1 1 anna 0.00 1.50 <o,f0> 今天\na1 1 anna 1.5 3.0 天气\n", "an STM file"),
        ("x.ttml", "<tt><p>今天</tt>", "XML or HTML with an error"),
        ("x.html", "<!DOCTYPE html>\n<html><p>今天</p></html>", "XML or HTML, but not TTML"),
        ("x.tsv", "id\ttext\na1\t今天\t好\n", "3 columns instead of 2"),
        ("x.tsv", "id\ttext\n\t今天\n", "line 2 has no id"),
        ("x.tsv", "id\ttext\tseconds\na1\t今天\tnan\n", "'nan' of line 2 is not a number of seconds"),
        ("x.tsv", "id\ttext\n", "no transcripts"),
        ("x.json", "[]", "no transcripts"),
        ("x.json", "[" * 100_000, "this is not JSON"),
        ("x.csv", f"id,text\na1,{'好' * 200_000}\n", "a damaged table"),
        ("x.TextGrid", 'File type = "ooTextFile"\n', "a Praat TextGrid"),
        ("x.txt", "a1 今天\na1 天气\na1 很好\n", "2 of 3 lines have the id of an earlier line"),
    ],
)
def test_files_that_cannot_be_scored_are_named(tmp_path, name, content, message):
    with pytest.raises(CorpusError, match=message):
        report_files(write(tmp_path / "ref", REFERENCE), [write(tmp_path / name, content)])


def test_recordings_against_utterances_are_refused_with_a_hint(tmp_path):
    with pytest.raises(CorpusError, match="no id in common") as caught:
        report_files(write(tmp_path / "ref", "x1 今天\n"), [write(tmp_path / "hyp.ctm", CTM)])
    assert "(CTM) has one text for each whole recording" in caught.value.hint
