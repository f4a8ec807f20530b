"""Tests of ``python -m analysis.report`` on files of other systems, with and without faults in the files."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import jiwer
import numpy as np
import pytest

from analysis.inputs.normalisation import (
    RULES,
    automatic_pinyin,
    hanzi_tokens,
    looks_like_pinyin,
    normalise,
    pinyin_tokens,
    rules_of,
)
from analysis.inputs.sound import signal_to_noise
from analysis.inputs.text_files import read_text_file
from analysis.inputs.training_texts import Training, count_seen
from analysis.inputs.utterance_results import HANZI, LEVELS, SYLLABLES, SystemOutput, UtteranceResult, as_text
from analysis.page.report import write_report_page
from analysis.report import main, report_files
from analysis.results.breakdowns import band
from analysis.results.collect import collect_results
from analysis.results.result_files import hypotheses_tsv, to_json, write_results
from analysis.results.results import VERSION
from analysis.results.terminal import results_text
from tests.support.injected_errors import INJECTORS, gold_outcomes, inject
from utils.errors import ConfigError, CorpusError

REFERENCE = {"a1": "今天天气很好", "a2": "我们去银行", "b1": "他说了三句话", "b2": "谢谢"}


def _write(path: Path, texts: dict[str, str] | list[tuple[str, str]], separator: str = " ") -> Path:
    items = texts.items() if isinstance(texts, dict) else texts
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{name}{separator}{text}\n" for name, text in items), encoding="utf-8")
    return path


@pytest.fixture
def reference(tmp_path) -> Path:
    return _write(tmp_path / "ref.txt", REFERENCE)


def _rate(results, name: str, system: int = 0):
    return next(rate for rate in results.systems[system].rates if rate.name == name)


def test_two_systems_in_wenets_style(reference, tmp_path, capsys):
    hypothesis = _write(
        tmp_path / "a" / "text", REFERENCE | {"a1": "今 天 天 汽 很 好", "b1": "她 说 了 三 句 话"}
    )
    other = _write(tmp_path / "b" / "text", REFERENCE | {"a2": "我们 去 银 航 吗"}, "\t")
    speakers = _write(tmp_path / "utt2spk", {"a1": "a", "a2": "a", "b1": "b", "b2": "b"})
    folder = tmp_path / "report"
    arguments = ["--reference", reference, "--hypothesis", hypothesis, "--hypothesis", other]
    arguments += ["--speakers", speakers, "--output", folder]
    assert main([str(argument) for argument in arguments]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "a/text and b/text against" in printed and "4 utterances of 2 speakers" in printed
    assert "matched pairs over 3 segments" in printed
    results = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert results["version"] == VERSION and results["task"] == "files"
    assert results["levels"] == ["syllables", "hanzi"]
    first, second = results["systems"]
    assert first["automatic_pinyin"] and first["attribution"] == {} and first["oracles"] == []
    assert (
        first["kinds"]["hanzi"]["exact homophone"] == 1 and first["kinds"]["hanzi"]["variant character"] == 1
    )
    assert second["kinds"]["hanzi"]["insertion"] == 1
    for system, path in ((first, hypothesis), (second, other)):
        lines = dict(line.split(None, 1) for line in path.read_text(encoding="utf-8").splitlines())
        theirs = jiwer.process_words(
            [" ".join(text) for text in REFERENCE.values()],
            [" ".join(lines[name].replace(" ", "")) for name in REFERENCE],
        )
        counts = next(rate for rate in system["rates"] if rate["name"] == "hanzi error")["counts"]
        assert counts["substitutions"] == theirs.substitutions
        assert counts["insertions"] == theirs.insertions
        assert counts["deletions"] == theirs.deletions
    comparison = results["comparisons"][1]
    assert comparison["level"] == "hanzi" and comparison["systems"] == ["a/text", "b/text"]
    assert [change["id"] for change in comparison["better"]] == ["a1", "b1"]
    assert [change["id"] for change in comparison["worse"]] == ["a2"]


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        (
            "a.json",
            '{"id": "a1", "text": "好"}\n\n{"id": "a2" "text": "好"}\n',
            "Expecting ',' delimiter, column 13",
        ),
        ("a.jsonl", '\n\n{"id": "a1", "text": \n{"id": "a2", "text": "好"}\n', "Expecting value, column 22"),
        ("a.json", '[\n{"id": "a1", "text": "好"},\n{"id": }\n]\n', "Expecting value, column 8"),
    ],
)
def test_damaged_json_is_named_with_its_line(name, text, fault, reference, tmp_path):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(CorpusError, match=re.escape(f"this is not JSON ({fault}), {tmp_path / name}:3")):
        report_files(reference, [tmp_path / name])


@pytest.mark.parametrize("line", ["a2", "a2 wo3 men5 qu4", f"a2 {REFERENCE['a2']}"])
def test_speakers_are_not_texts(line, reference, tmp_path):
    (tmp_path / "utt2spk").write_text(f"a1 a\n{line}\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="utt2spk:2, lines are 'id speaker'"):
        report_files(reference, [_write(tmp_path / "hyp", REFERENCE)], speakers=tmp_path / "utt2spk")


def test_an_output_that_is_a_file_is_refused_before_anything_is_read(tmp_path):
    output = _write(tmp_path / "page", {})
    with pytest.raises(ConfigError, match="--output is a file"):
        main(["--reference", "none", "--hypothesis", "none", "--output", str(output)])


def test_a_closed_pipe_prevents_no_file(reference, tmp_path, monkeypatch):
    def closed(*_texts):
        raise BrokenPipeError

    monkeypatch.setattr("builtins.print", closed)
    with pytest.raises(BrokenPipeError):
        main(
            ["--reference", str(reference), "--hypothesis", str(reference), "--output", str(tmp_path / "out")]
        )
    assert (tmp_path / "out/report.html").is_file() and (tmp_path / "out/report.json").is_file()


def test_a_rate_of_no_tokens_is_not_zero(reference, tmp_path):
    """Without a correct toneless syllable there is no tone to be wrong: not a tone error of 0 %."""
    hypothesis = _write(tmp_path / "hyp", dict.fromkeys(REFERENCE, ""))
    results = report_files(reference, [hypothesis])
    tones, syllables = _rate(results, "tone error"), _rate(results, "syllable error")
    assert (tones.rate, tones.low, tones.high) == (None, None, None) and syllables.rate == 1
    (line,) = (line for line in results_text(results).splitlines() if line.startswith("tone error"))
    assert line.split()[2] == "–"
    json_file, rates, *_ = write_results(tmp_path / "out", results)
    assert json.loads(json_file.read_text(encoding="utf-8"))["systems"][0]["rates"][2]["rate"] is None
    assert "tone error,syllables,,,,utterance," in rates.read_text(encoding="utf-8-sig")
    page = write_report_page(tmp_path / "out", results, {}).read_text(encoding="utf-8")
    assert '<h3>Tone error</h3>\n<p class="figure">–</p>' in page


def test_tables_are_csv_for_spreadsheets(reference, tmp_path):
    hypothesis = _write(tmp_path / "hyp", REFERENCE | {"a1": "今天天汽好"})
    files = write_results(tmp_path / "out", report_files(reference, [hypothesis]))
    assert {path.name for path in files} == {
        "report.json",
        "rates.csv",
        "error_types.csv",
        "breakdowns.csv",
        "utterances.csv",
        "errors.csv",
    }
    assert files[1].read_bytes().startswith(b"\xef\xbb\xbf")
    errors = list(csv.DictReader((tmp_path / "out" / "errors.csv").open(encoding="utf-8-sig", newline="")))
    assert [(row["id"], row["position"], row["reference"], row["output"], row["kind"]) for row in errors] == [
        ("a1", "4", "气", "汽", "exact homophone"),
        ("a1", "5", "很", "", "deletion"),
    ]
    utterances = list(
        csv.DictReader((tmp_path / "out" / "utterances.csv").open(encoding="utf-8-sig", newline=""))
    )
    assert [row["hanzi_errors"] for row in utterances] == ["2", "0", "0", "0"]


def test_missing_extra_and_repeated_ids_are_reported(reference, tmp_path):
    lines = [
        ("a1", "今天天气很好"),
        ("a1", "今天天气很好"),
        ("a2", "我们去"),
        ("a2", "我们"),
        ("z9", "多"),
        ("b1", ""),
    ]
    results = report_files(reference, [_write(tmp_path / "hyp", lines)])
    reported = {problem.description: (problem.count, problem.examples) for problem in results.problems}
    assert reported == {
        "ids that come twice with the same text": (1, ("a1",)),
        "ids that come twice with different texts": (1, ("a2",)),
        "ids without a text": (1, ("b1",)),
        "ids of the reference that are missing": (1, ("b2",)),
        "ids that are not in the reference": (1, ("z9",)),
    }
    counts = _rate(results, "hanzi error").counts
    assert (counts.errors, counts.deletions, counts.reference) == (2 + 6 + 2, 10, 19)
    left_out = report_files(reference, [tmp_path / "hyp"], leave_out=True)
    assert _rate(left_out, "hanzi error").counts.reference == 17


def test_no_common_id_is_an_error(reference, tmp_path):
    with pytest.raises(CorpusError, match=r"no id in common with .*ref\.txt: 'a1' there, 'x1' here"):
        report_files(reference, [_write(tmp_path / "hyp", {"x1": "好"})])


def test_files_that_can_not_be_read(reference, tmp_path):
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "gbk").write_bytes("a1 今天\n".encode("gb18030"))
    with pytest.raises(CorpusError, match="empty"):
        report_files(reference, [tmp_path / "empty"])
    with pytest.raises(CorpusError, match=r"gbk:1.*iconv"):
        report_files(reference, [tmp_path / "gbk"])
    with pytest.raises(CorpusError, match="can't read"):
        report_files(reference, [tmp_path / "none"])
    with pytest.raises(ConfigError, match="twice"):
        report_files(reference, [reference, reference])
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(CorpusError, match="can't read"):
        report_files(reference, [tmp_path / "loop"])


@pytest.mark.parametrize("text", ["我们去银行\n今天天气，很好。\n", "我们\n你好\n他说 3 句\n"])
def test_lines_without_ids_are_refused(reference, tmp_path, text):
    (tmp_path / "lines.txt").write_text(text, encoding="utf-8")
    with pytest.raises(CorpusError, match=r"without an id.*lines\.txt.*awk"):
        report_files(tmp_path / "lines.txt", [reference])
    (tmp_path / "silent").write_text("客服1\n客服2\n", encoding="utf-8")  # ids of a silent recogniser
    assert read_text_file(tmp_path / "silent").lines.keys() == {"客服1", "客服2"}


def test_normalisation_is_named_and_can_be_switched(reference, tmp_path):
    texts = {"a1": "今天天气，很好。", "a2": "我们去银行！", "b1": "他说了3句话", "b2": "ＯＫ"}
    hypothesis = _write(tmp_path / "hyp", texts)
    truth = _write(tmp_path / "truth.txt", REFERENCE | {"b2": "ok"})
    results = report_files(truth, [hypothesis])
    assert _rate(results, "hanzi error").counts.errors == 1
    assert results.settings["normalisation"] == "width, punctuation, case"
    everything = report_files(truth, [hypothesis], rules_of("all"))
    assert _rate(everything, "hanzi error").counts.errors == 0
    nothing = report_files(truth, [hypothesis], rules_of("none"))
    assert _rate(nothing, "hanzi error").counts.errors == 1 + 3 + 1


def test_unknown_rules_of_normalisation_are_refused():
    with pytest.raises(ConfigError, match=r"unknown normalisation 'spaces'.*known: width"):
        rules_of("width,spaces")


@pytest.mark.parametrize(
    ("text", "rules", "expected"),
    [
        ("Ｗｅ，你好！", ("width",), "We,你好!"),
        ("it's 3.5 <unk> 好。", ("punctuation",), "it's 3.5 <unk> 好 "),
        ("100%的人", ("digits", "punctuation"), "百分之百的人"),
        ("看著我們，乾淨的臺灣", ("traditional",), "看着我们，干净的台湾"),
        ("OK 好", ("case",), "ok 好"),
        ("１２０人", ("width", "digits"), "一百二十人"),
    ],
)
def test_rules(text, rules, expected):
    assert normalise(text, rules) == expected


def test_tokens():
    assert hanzi_tokens("我是WTO的20个<unk>人") == ("我", "是", "WTO", "的", "20", "个", "<unk>", "人")
    assert as_text(hanzi_tokens("我 是 ab cd 人")) == "我是ab cd人"
    assert automatic_pinyin(hanzi_tokens("我去WTO银行")) == ("wo3", "qu4", "[wto]", "yin2", "hang2")
    assert pinyin_tokens("nǐ hao3 lu:4 xyz") == (("ni3", "hao3", "lv4", "[xyz]"), ["xyz"])
    assert looks_like_pinyin(["ni3 hao3", "xyz"])
    assert not looks_like_pinyin(["ni3", "你 好"]) and not looks_like_pinyin(["the cat sat on"])


def test_pinyin_files(tmp_path):
    reference = _write(tmp_path / "ref", {"a": "ni3 hao3", "b": "zhe4 shi4 shan1"})
    hypothesis = _write(tmp_path / "hyp", {"a": "nǐ hǎo", "b": "ze4 shi4 shang1 xyz"})
    results = report_files(reference, [hypothesis])
    system = results.systems[0]
    assert results.levels == (SYLLABLES,) and not system.automatic_pinyin
    assert system.named_confusions["zh–z"] == system.named_confusions["an–ang"] == 1
    assert system.kinds[SYLLABLES]["insertion"] == 1
    assert [problem.description for problem in results.problems] == ["words that are not Mandarin syllables"]


def test_pinyin_without_tones_is_reported(tmp_path):
    reference = _write(tmp_path / "ref", {"a": "ni3 hao3"})
    results = report_files(reference, [_write(tmp_path / "hyp", {"a": "ni hao"})])
    assert "without a tone" in results.problems[0].description
    assert _rate(results, "syllable error").counts.errors == 2
    assert _rate(results, "toneless syllable error").counts.errors == 0


def test_hanzi_against_pinyin_compares_syllables(reference, tmp_path):
    hypothesis = _write(
        tmp_path / "hyp", {"a1": "jin1 tian1 tian1 qi4 hen3 hao4", "a2": "wo3 men5 qu4 yin2 hang2"}
    )
    results = report_files(reference, [hypothesis], leave_out=True)
    assert results.levels == (SYLLABLES,)
    assert results.systems[0].kinds[SYLLABLES]["tone only"] == 1


def test_a_reference_without_syllables_invents_no_errors(tmp_path):
    """pypinyin reads 还 in these sentences as hai2; the recogniser's huan2 was spoken."""
    reference = _write(tmp_path / "ref", {"a": "请还我笔", "b": "他还iPhone"})
    lines = [
        {"id": "a", "hanzi": "请还我比", "pinyin": "qing3 huan2 wo3 bi3"},
        {"id": "b", "hanzi": "她还iPhone", "pinyin": "ta1 huan2"},
    ]
    hypothesis, other = tmp_path / "hyp.json", _write(tmp_path / "other", {"a": "qing3 hai2 wo3 bi4"})
    hypothesis.write_text(json.dumps(lines, ensure_ascii=False), encoding="utf-8")
    results = report_files(reference, [hypothesis])
    (system,) = results.systems
    assert _rate(results, "syllable error").counts.errors == 0
    assert system.kinds[HANZI]["exact homophone"] == system.kinds[HANZI]["variant character"] == 1
    assert (system.attribution, system.oracles) == ({}, ())
    assert "syllables of the reference are pypinyin's reading" in results_text(results)
    page = write_report_page(tmp_path / "out", results).read_text(encoding="utf-8")
    assert "The syllables of the reference are pypinyin’s reading" in page
    both = report_files(reference, [hypothesis, _write(tmp_path / "hanzi", REFERENCE | {"a": "请还我笔"})])
    assert [each.automatic_pinyin for each in both.systems] == [("reference",), ("reference", "output")]
    assert both.comparisons[0].rates[0] == 0
    mixed = report_files(reference, [hypothesis, other])  # the other file has no hanzi that tell the reading
    assert [_rate(mixed, "syllable error", number).counts.errors for number in (0, 1)] == [0, 4]


def test_files_of_this_project(tmp_path):
    gold = gold_outcomes(30)
    outcomes, _ = inject(gold, list(INJECTORS), 0.3)
    header = "id\taudio\tseconds\tspeaker\tpinyin\thanzi\n"
    rows = (
        f"{o.id}\tx.wav\t2.5\t{o.speaker}\t{' '.join(o.reference_pinyin)}\t{o.reference_hanzi}\n"
        for o in gold
    )
    (tmp_path / "test.tsv").write_text(header + "".join(rows), encoding="utf-8")
    (tmp_path / "hypotheses.tsv").write_text(hypotheses_tsv(outcomes), encoding="utf-8")
    results = report_files(
        tmp_path / "test.tsv", [tmp_path / "hypotheses.tsv"], training=[tmp_path / "test.tsv"]
    )
    system = results.systems[0]
    assert not system.automatic_pinyin and system.attribution_basis == "syllable"
    assert (
        system.attribution["acoustic"] and system.attribution["language"] and system.attribution["repaired"]
    )
    assert results.speakers == 12 and results.seconds == 75.0
    assert {each.name for each in system.breakdowns} >= {"speaker", "speaking rate", "sentence in training"}
    ours = collect_results([SystemOutput("x", outcomes)], LEVELS, "pipeline", "x").systems[0]
    assert ours.kinds == system.kinds


def test_causes_add_up_with_latin_words_and_missing_syllables():
    latin = UtteranceResult("a", "", 0.0, ("ta1", "de5"), ("ta1", "di4"), "他的iPhone", "她地爱疯")
    without = UtteranceResult("b", "", 0.0, ("ni3", "hao3"), ("ni3",), "你好", "你号")
    (system,) = collect_results([SystemOutput("x", [latin, without])], LEVELS, "files", "x").systems
    errors = sum(utterance.hanzi_errors for utterance in system.utterances)
    assert errors == 5 and system.attribution["repaired"] == 0
    assert sum(system.attribution.values()) == errors


def _manifest(path: Path, lines: dict[str, tuple[str, str]]) -> Path:
    rows = [f"{name}\tx.wav\t2.5\ts\t{pinyin}\t{hanzi}\n" for name, (pinyin, hanzi) in lines.items()]
    path.write_text("id\taudio\tseconds\tspeaker\tpinyin\thanzi\n" + "".join(rows), encoding="utf-8")
    return path


def test_hypotheses_of_a_recogniser_of_syllables_have_no_hanzi_errors(tmp_path):
    """`test.py speech` writes an empty column of hanzi."""
    truth = ("ni3", "hao3")
    outcomes = [UtteranceResult("a", "s", 1.0, truth, spoken, "你好", "") for spoken in (truth, ("ni2",))]
    table = hypotheses_tsv([replace(each, id=name) for each, name in zip(outcomes, "ab", strict=True)])
    rows = list(csv.DictReader(table.splitlines(), delimiter="\t"))
    assert [(row["syllable_errors"], row["hanzi_errors"]) for row in rows] == [("0", ""), ("2", "")]
    (tmp_path / "hypotheses.tsv").write_text(table, encoding="utf-8")
    manifest = _manifest(tmp_path / "test.tsv", dict.fromkeys("ab", ("ni3 hao3", "你好")))
    results = report_files(manifest, [tmp_path / "hypotheses.tsv"])
    assert results.levels == (SYLLABLES,)
    assert _rate(results, "syllable error").counts.errors == 2


def test_equal_hanzi_have_the_syllables_of_the_reference(tmp_path):
    manifest = _manifest(
        tmp_path / "test.tsv", {"a": ("zhe4 er5 shi4 de5 di5 fang1", "这儿是的地方"), "b": ("hao4", "好")}
    )
    same = _write(tmp_path / "same.txt", {"a": "这儿是的地方", "b": "好"})
    assert _rate(report_files(manifest, [same]), "syllable error").counts.errors == 0
    other = _write(tmp_path / "other.txt", {"a": "那儿是的的地方", "b": "号"})
    assert _rate(report_files(manifest, [other]), "syllable error").counts.errors == 2  # 那 and the second 的


def test_systems_without_a_common_utterance_are_an_error(reference, tmp_path):
    first, second = _write(tmp_path / "a.txt", {"a1": "今天"}), _write(tmp_path / "b.txt", {"b1": "他说"})
    with pytest.raises(CorpusError, match=r"no utterance is in all of these files.*a\.txt.*b\.txt"):
        report_files(reference, [first, second], leave_out=True)
    assert report_files(reference, [first, second]).utterances == len(REFERENCE)


def test_a_recording_without_speech_has_no_sentence_of_the_training():
    training = Training(sentences={"你好", ""})
    assert count_seen(training, ["你好", "", "再见"]) == 1
    assert count_seen(Training(), ["你好"]) is None


@pytest.fixture(scope="module")
def results():
    outcomes, _ = inject(gold_outcomes(60), list(INJECTORS), 0.3)
    training = Training(
        hanzi=set("银行"), candidates=lambda _: "银行", syllables={"yin2": 5}, sentences=set()
    )
    known = {SYLLABLES: training, HANZI: training}
    return collect_results([SystemOutput("x", outcomes)], LEVELS, "pipeline", "x on test", known, {"beam": 4})


def test_results_agree_with_each_other(results):
    system = results.systems[0]
    hanzi = next(rate for rate in system.rates if rate.name == "hanzi error")
    assert sum(system.kinds[HANZI].values()) == hanzi.counts.errors
    assert (
        sum(count for name, count in system.attribution.items() if name != "repaired") == hanzi.counts.errors
    )
    wrong = hanzi.counts.errors
    assert wrong == sum(utterance.hanzi_errors for utterance in system.utterances)
    assert sum(token[2] != "" for utterance in system.utterances for token in utterance.alignment) == wrong
    assert all(
        utterance.alignment or not (utterance.hanzi_errors or utterance.syllable_errors)
        for utterance in system.utterances
    )
    assert system.unknown_kinds == () and system.attribution_basis == "gold pass"
    assert system.kinds[HANZI]["out-of-vocabulary hanzi"] > 0
    for breakdown in system.breakdowns:
        rate = next(rate for rate in system.rates if rate.level == breakdown.level)
        assert sum(group.counts.reference for group in breakdown.groups) == rate.counts.reference


def test_results_are_json_that_browsers_read(results):
    plain = json.loads(to_json(results))
    assert "NaN" not in to_json(results) and "Infinity" not in to_json(results)
    utterances = plain["systems"][0]["utterances"]
    alignment = next(utterance["alignment"] for utterance in utterances if utterance["alignment"])
    assert all(len(token) == 8 and all(isinstance(field, str) for field in token) for token in alignment)


def test_results_are_printed(results):
    printed = results_text(results)
    for text in (
        "x on test: 60 utterances of 12 speakers",
        "stage one perfect",
        "by the gold pass",
    ):
        assert text in printed


@pytest.mark.parametrize("decibels", [0.0, 10.0, 20.0, 30.0])
def test_noise_is_estimated(decibels):
    """Bursts of sound with pauses, in white noise of known power."""
    rng = np.random.default_rng(1)
    time = np.arange(4 * 16_000) / 16_000
    speaking = np.sin(2 * np.pi * 0.7 * time) > -0.5
    voice = speaking * np.sin(2 * np.pi * 220 * time) * 0.3
    noise = rng.standard_normal(len(time))
    noise *= np.sqrt(np.square(voice[speaking]).mean() / np.square(noise).mean() / 10 ** (decibels / 10))
    assert signal_to_noise(voice + noise, 16_000) == pytest.approx(decibels, abs=1.5)


def test_signal_to_noise_ratios_without_noise_or_speech():
    assert signal_to_noise(np.zeros(16_000), 16_000) is None
    assert signal_to_noise(np.ones(100), 16_000) is None
    silence_inside = np.concatenate([np.zeros(8_000), np.random.default_rng(0).standard_normal(8_000)])
    assert signal_to_noise(silence_inside, 16_000) == 60.0
    assert signal_to_noise(np.random.default_rng(0).standard_normal(16_000), 16_000) == -10.0


def test_bands():
    assert [band(value, (1, 10, 100), "times") for value in (0, 1, 9, 10, 5_000)] == [
        "0 times",
        "1 – 9 times",
        "1 – 9 times",
        "10 – 99 times",
        "100 times or more",
    ]
    assert band(2.5, (2.0, 3.0), "dB") == "2 – 3 dB" and band(-1.0, (2.0, 3.0), "dB") == "below 2 dB"


@pytest.mark.parametrize(
    "written",
    [
        "2008年 二零零八年 二〇〇八年 二○○八年",
        "3:30 三点半 三点三十 三点三十分",
        "2024-01-05 二零二四年一月五日 2024/1/5 2024年1月5日 二〇二四年一月五日",
        "13,500 13500 一万三千五百 1万3500",
        "30%-40% 百分之三十到四十 30%到40% 百分之三十到百分之四十",
        "8:05 八点零五分 八点零五 8点05分",
        "13800138000 一三八零零一三八零零零 幺三八零零幺三八零零零",
        "2000人 两千人 二千人",
        "2.5kg 二点五公斤 2.5公斤",
        "-5℃ 零下五摄氏度",
        "3·15晚会 三一五晚会 3.15晚会",
        "1+1=2 一加一等于二",
        "3-5天 三到五天 3~5天",
        "￥500 500元 五百元",
        "9点15 九点十五 9:15",
    ],
)
def test_a_number_has_the_same_form_in_whatever_way_it_is_written(written):
    forms = {"".join(normalise(text, RULES).split()) for text in written.split()}
    assert len(forms) == 1
