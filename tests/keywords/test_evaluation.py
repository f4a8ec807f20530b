"""Tests of test.py keyword: figures by hand, the command on a tiny run, refused options."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis.keyword.clip_report import (
    COLUMNS,
    Decision,
    keyword_results,
    keyword_tables,
    surest_mistakes,
)
from data.manifest import Utterance, write_manifest
from model_keyword.loading import load_keyword_model
from tests.support.scripts import load_script
from tests.support.tiny_words import write_keyword_run, write_tiny_words
from utils.audio.reading import read_audio
from utils.errors import ConfigError, CorpusError, RunError

LABELS = ("_silence_", "北京", "背景", "语音")
command = load_script("test.py")


def decisions(text: str) -> list[Decision]:
    """Decisions written as ``speaker:label>predicted``, with a dash for no speaker."""
    found = []
    for number, entry in enumerate(text.split()):
        speaker, label, predicted = entry.replace(">", ":").split(":")
        right = label == predicted
        found.append(
            Decision(
                f"c{number}",
                label,
                predicted,
                probability=0.9 if right else 0.5 + number / 100,
                label_probability=0.9 if right else 0.4 - number / 100,
                speaker="" if speaker == "-" else speaker,
            )
        )
    return found


EXAMPLE = decisions(
    "a:北京>北京 a:北京>背景 a:背景>背景 a:语音>语音 "
    "b:北京>背景 b:背景>背景 b:背景>北京 b:语音>语音 "
    "-:_silence_>_silence_ -:_silence_>北京"
)


# ------------------------------------------------------------------ figures


def test_accuracy_precision_and_recall_by_hand():
    results = keyword_results(EXAMPLE, LABELS)
    assert (results["clips"], results["wrong"], results["speakers"]) == (10, 4, 2)
    assert results["accuracy"] == pytest.approx(6 / 10)
    words = results["words"]
    assert (words["北京"]["precision"], words["北京"]["recall"]) == (
        pytest.approx(1 / 3),
        pytest.approx(1 / 3),
    )
    assert (words["背景"]["precision"], words["背景"]["recall"]) == (
        pytest.approx(2 / 4),
        pytest.approx(2 / 3),
    )
    assert (words["语音"]["precision"], words["语音"]["recall"]) == (1.0, 1.0)
    assert (words["_silence_"]["precision"], words["_silence_"]["recall"]) == (1.0, pytest.approx(1 / 2))
    assert results["matrix"] == [[1, 1, 0, 0], [0, 1, 2, 0], [0, 1, 2, 0], [0, 0, 0, 2]]


def test_f1_by_hand():
    results = keyword_results(EXAMPLE, LABELS)
    f1 = {label: word["f1"] for label, word in results["words"].items()}
    expected = {"_silence_": 2 / 3, "北京": 2 / 6, "背景": 4 / 7, "语音": 4 / 4}
    assert f1 == {label: pytest.approx(value) for label, value in expected.items()}
    assert results["macro_f1"] == pytest.approx((2 / 3 + 2 / 6 + 4 / 7 + 1) / 4)
    shown = keyword_tables({**results, "split": "test"})
    assert "macro F1 64.29 %" in shown and re.search(r"背景 .*57\.14 %\n", shown)


def test_confusions_are_named_the_most_frequent_first():
    found = keyword_results(EXAMPLE, LABELS)["confusions"]
    assert [(confusion["label"], confusion["predicted"], confusion["clips"]) for confusion in found] == [
        ("北京", "背景", 2),
        ("_silence_", "北京", 1),
        ("背景", "北京", 1),
    ]
    assert found[0]["share"] == pytest.approx(2 / 3)


def test_speakers_come_worst_first_and_silence_has_none():
    rows = keyword_results(EXAMPLE, LABELS)["by_speaker"]
    assert [(row["speaker"], row["clips"], row["accuracy"]) for row in rows] == [
        ("b", 4, 2 / 4),
        ("not known", 2, 1 / 2),
        ("a", 4, 3 / 4),
    ]


def test_speakers_are_resampled_where_there_are_enough():
    """One of six speakers has only errors: resampling speakers widens the interval."""
    many = [decision for speaker in "abcdef" for decision in decisions(f"{speaker}:北京>北京 " * 10)]
    many = [replace(decision, predicted="背景") if decision.speaker == "a" else decision for decision in many]
    grouped = keyword_results(many, LABELS)
    single = keyword_results([replace(decision, speaker="") for decision in many], LABELS)
    assert (grouped["interval_unit"], single["interval_unit"]) == ("speaker", "clip")
    (low, high), (narrow_low, narrow_high) = grouped["interval"], single["interval"]
    assert low < narrow_low < 5 / 6 < narrow_high < high == 1.0
    assert keyword_results(EXAMPLE, LABELS)["interval_unit"] == "clip", "two speakers are too few"


def test_the_surest_mistakes_come_first():
    assert [decision.id for decision in surest_mistakes(EXAMPLE)] == ["c9", "c6", "c4", "c1"]


# ------------------------------------------------------------------ the command


@pytest.fixture(scope="module")
def words(tmp_path_factory) -> Path:
    return write_tiny_words(tmp_path_factory.mktemp("words") / "words")


@pytest.fixture(scope="module")
def run(words, tmp_path_factory) -> Path:
    return write_keyword_run(tmp_path_factory.mktemp("runs") / "run", words)


def results_of(folder: Path) -> dict:
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


def test_a_split_is_evaluated_and_reported(run, words, tmp_path, capsys):
    assert command.main(["keyword", str(run), "--report", str(tmp_path / "report")]) == 0
    printed = capsys.readouterr().out
    results = results_of(run / "test" / "test")
    assert re.search(r"keyword on test: 13 clips of 2 speakers\naccuracy \d+\.\d\d %", printed)
    assert results_of(tmp_path / "report") == results and (tmp_path / "report" / "report.html").is_file()
    assert results["words"]["_silence_"]["clips"] == 1 and results["words"]["low"]["clips"] == 6

    model = load_keyword_model(run)
    lines = (run / "test" / "test" / "decisions.tsv").read_text(encoding="utf-8").splitlines()[1:]
    for line in lines:
        row = dict(zip(COLUMNS, line.split("\t"), strict=True))
        if row["audio"]:
            logits = model.logits(read_audio(Path(row["audio"]), 16000)[None])[0]
            odds = np.exp(logits - logits.max())
            assert row["predicted"] == model.labels[odds.argmax()]
            assert float(row["probability"]) == pytest.approx(odds.max() / odds.sum(), abs=2e-3)
    right = [line.split("\t")[2] == line.split("\t")[3] for line in lines]
    assert results["accuracy"] == pytest.approx(np.mean(right)) and len(lines) == 13


def test_recordings_elsewhere_and_json(run, words, tmp_path, capsys):
    moved = shutil.copytree(words, tmp_path / "moved")
    shutil.rmtree(moved / "test" / "high")
    arguments = ["keyword", str(run), "--json", "--output", str(tmp_path / "out"), f"data.folder={moved}"]
    assert command.main(arguments) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == results_of(tmp_path / "out") and printed["words"]["high"]["clips"] == 0


def test_accuracy_under_a_time_shift(run, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ["keyword", str(run), "--shift-ms", "-200", "-50", "0", "--output", str(out)]
    assert command.main(arguments) == 0
    assert re.search(r"shift in ms +accuracy\n-200 .*\n-50 .*\n\+0 ", capsys.readouterr().out)
    results = results_of(out)
    assert results["accuracy_by_shift"]["0"] == pytest.approx(results["accuracy"])
    # Clips of 200 ms shifted by 200 ms are digital silence, for which the model always gives the same label.
    shares = [word["clips"] / results["clips"] for word in results["words"].values()]
    assert any(results["accuracy_by_shift"]["-200"] == pytest.approx(share) for share in shares)


HANZI = {"低": ("low", "di1"), "高": ("high", "gao1")}


def _manifest(path: Path, words: Path, hanzi: dict[str, tuple[str, str]]) -> Path:
    rows = [
        Utterance(label, words / "test" / word / "gina_nohash_0.wav", 0.2, "gina", (pinyin,), label)
        for label, (word, pinyin) in hanzi.items()
    ]
    write_manifest(path, rows)
    return path


def test_a_list_of_the_user_is_evaluated(words, tmp_path):
    run = write_keyword_run(tmp_path / "run", words, ("_silence_", "低", "高"))
    manifest = _manifest(tmp_path / "mine.tsv", words, HANZI)
    arguments = ["keyword", str(run), "--manifest", str(manifest), "--output", str(tmp_path / "out")]
    assert command.main(arguments) == 0
    results = results_of(tmp_path / "out")
    assert results["split"] == f"{tmp_path.name}-mine" and results["words"]["低"]["clips"] == 1
    assert results["words"]["_silence_"]["clips"] == 0 and results["clips"] == 2
    strange = _manifest(tmp_path / "strange.tsv", words, {**HANZI, "北": ("high", "bei3")})
    with pytest.raises(CorpusError, match=r"no label for 北.*it knows _silence_, 低, 高"):
        command.main([*arguments[:2], "--manifest", str(strange)])


def test_a_list_is_scored_as_it_is(words, tmp_path):
    """No silence is added, even if the run's config requests it, and no listed clip is left out."""
    run = write_keyword_run(tmp_path / "run", words, ("_silence_", "_unknown_", "低"))
    listed = [("low", ("di1",), "低"), *3 * [("high", (), "")], *3 * [("high", ("gao1",), "高")]]
    rows = [
        Utterance(f"{number}", words / "test" / word / f"gina_nohash_{number % 3}.wav", 0.2, "gina", *text)
        for number, (word, *text) in enumerate(listed)
    ]
    write_manifest(tmp_path / "mine.tsv", rows)
    arguments = ["keyword", str(run), "--manifest", str(tmp_path / "mine.tsv")]
    for share in ("0", "2"):
        out = tmp_path / share
        extra = ["--output", str(out), f"data.silence_share={share}", f"data.unknown_share={share}"]
        assert command.main([*arguments, *extra]) == 0
        clips = {label: word["clips"] for label, word in results_of(out)["words"].items()}
        assert clips == {"_silence_": 3, "_unknown_": 3, "低": 1}


def test_a_word_that_a_model_does_not_know_is_unknown_to_it(words, tmp_path):
    run = write_keyword_run(tmp_path / "run", words, ("_unknown_", "低"))
    manifest = _manifest(tmp_path / "mine.tsv", words, HANZI)
    out = tmp_path / "out"
    assert command.main(["keyword", str(run), "--manifest", str(manifest), "--output", str(out)]) == 0
    assert results_of(out)["words"]["_unknown_"]["clips"] == 1


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["features.mel_bins=10"], ConfigError, "'features.mel_bins=10' can't be changed after the training"),
        (["seed=3"], ConfigError, "'seed=3' can't be changed after the training"),
        (["data.folder=/nowhere"], CorpusError, "/nowhere"),
        (["data.foldre=x"], ConfigError, "did you mean"),
        (["data.clip_ms=500"], ConfigError, r"another data\.clip_ms \(200 in training, 500 asked for\)"),
        (["data.context_ms=100"], ConfigError, r"data\.context_ms \(0 in training, 100 asked for\)"),
        (["data.test=[a.tsv]"], ConfigError, "data.folder and data.test are both given"),
        (["--weights", "last"], RunError, r"has no last\.weights\.h5"),
    ],
)
def test_what_cannot_be_tested_is_refused_with_the_reason(run, arguments, error, message):
    with pytest.raises(error, match=message):
        command.main(["keyword", str(run), *arguments])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--spoken", "spoken.tsv"], "--spoken is the list of keywords in a --recording"),
        (["--recording", "a.wav", "--split", "dev", "data.folder=x"], "leave out --split, data.folder=x"),
        (["--recording", "a.wav", "--weights", "last"], "leave out --weights"),
    ],
)
def test_options_that_would_be_ignored_are_refused(run, capsys, arguments, message):
    with pytest.raises(SystemExit):
        command.main(["keyword", str(run), *arguments])
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("report", [False, True])
def test_the_output_folder_holds_with_a_recording(run, tmp_path, monkeypatch, capsys, report):
    """results.json goes into --output; table and picture too, unless there is a --report."""
    figures = {"missed": 1, "false_alarms": 2}
    requested = []
    monkeypatch.setattr(
        "keywords.recording_results.recording_results",
        lambda *arguments: requested.append(arguments) or figures,
    )
    arguments = ["keyword", str(run), "--recording", "day.flac", "--json", "--output", str(tmp_path / "out")]
    more = ["--report", str(tmp_path / "report")] if report else []
    assert command.main([*arguments, *more]) == 0
    assert results_of(tmp_path / "out") == json.loads(capsys.readouterr().out) == figures
    folder = tmp_path / ("report" if report else "out")
    assert requested == [(run / "export", Path("day.flac"), None, folder)]
    assert not (run / "test" / f"{Path.cwd().name}-day").exists()


def test_the_results_of_a_recording_replace_no_others(run, tmp_path, monkeypatch, capsys):
    """Neither those of a recording of the same name in another folder nor those of a split."""
    monkeypatch.setattr("keywords.recording_results.recording_results", lambda *arguments: {"missed": 1})
    monkeypatch.setattr(command, "recording_table", str)
    for recording in ("monday/stream.flac", "tuesday/stream.flac", "tuesday/test.wav"):
        assert command.main(["keyword", str(run), "--recording", str(tmp_path / recording)]) == 0
    names = ("monday-stream", "tuesday-stream", "tuesday-test")
    assert all((run / "test" / name / "results.json").is_file() for name in names)
