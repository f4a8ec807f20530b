"""Tests of test.py with analysis/results: printed and written figures against values by hand."""

import csv
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jiwer
import pytest
from rapidfuzz.distance import Levenshtein

from analysis.inputs.text_files import read_text_file
from analysis.inputs.utterance_results import (
    LANGUAGE,
    PIPELINE,
    SPEECH,
    TASK_LEVELS,
    SystemOutput,
    UtteranceResult,
)
from analysis.results.collect import collect_results
from analysis.results.results import Results
from analysis.results.terminal import results_text
from data.manifest import read_manifest
from tests.support.report_results import score
from tests.support.scripts import ROOT, load_script
from tests.support.tiny_corpus import write_tiny_corpus
from utils.errors import AudioError, ConfigError, CorpusError, RunError
from utils.files import write_text
from utils.run_folder.run import PRETRAINED, RunFolder

command = load_script("test.py")


def _outcome(
    name: str, reference: str, output: str, hanzi: str = "", recognised: str = "", speaker: str = ""
) -> UtteranceResult:
    return UtteranceResult(
        name, speaker, 1.0, tuple(reference.split()), tuple(output.split()), hanzi, recognised
    )


OUTCOMES = [
    _outcome("right", "ni3 hao3", "ni3 hao3", "你好", "你好"),
    _outcome("homophone", "ta1 shi4 shui2", "ta1 shi4 shui2", "他是谁", "她是谁"),
    _outcome("tone", "mai3 ma3", "mai4 ma3", "买马", "卖马"),
    _outcome("missed", "wo3 bu4 hao3", "wo3 hao3", "我不好", "我好"),
]


def test_figures_by_hand():
    results = score(OUTCOMES, PIPELINE)
    assert results["utterances"] == 4
    assert results["speakers"] == 0
    assert results["syllable_error_rate"] == 2 / 10
    assert results["toneless_syllable_error_rate"] == 1 / 10
    assert results["tone_error_rate"] == 1 / 9
    assert results["cer"] == 3 / 10
    assert results["sentence_error_rate"] == 3 / 4
    assert results["counts"]["cer"] == {"substitutions": 2, "insertions": 0, "deletions": 1, "reference": 10}
    assert results["error_types"]["syllables"]["tone only"] == 1
    assert results["error_types"]["hanzi"]["variant character"] == 1
    assert results["error_types"]["hanzi"]["homophone but for the tone"] == 1
    assert results["error_types"]["attribution"] == {
        "acoustic": 2,
        "language": 1,
        "both": 0,
        "search": 0,
        "label": 0,
        "unknown": 0,
        "repaired": 0,
    }
    assert [utterance["id"] for utterance in results["worst"]] == ["tone", "homophone", "missed"]


def test_a_language_test_reports_no_syllables():
    results = score(OUTCOMES, LANGUAGE)
    assert "syllable_error_rate" not in results
    assert set(results["error_types"]) == {"hanzi", "hanzi_confusions", "attribution"}


def test_interval_is_by_speaker_where_all_are_known():
    named = [_outcome(str(i), "ni3 hao3", "ni3", speaker=f"S{i % 6}") for i in range(12)]
    assert score(named, SPEECH)["interval_unit"] == "speaker"
    assert score(named, SPEECH)["speakers"] == 6
    assert score([*named, *OUTCOMES], SPEECH)["interval_unit"] == "sentence"
    assert score([*named, *OUTCOMES[:3]], SPEECH)["interval_unit"] == "utterance", "too few of both"


def test_a_language_model_is_judged_by_sentences():
    named = [_outcome(str(i), "ni3 hao3", "ni3 hao3", "你好", "你号", speaker=f"S{i}") for i in range(9)]
    results = score(named, LANGUAGE)
    assert results["interval_unit"] == "utterance"
    assert len(results["worst"]) == 1
    different = [
        _outcome(str(i), "ni3 hao3", "ni3 hao3", f"{hanzi}好", "你好") for i, hanzi in enumerate("你尼泥拟妮")
    ]
    assert score(different, LANGUAGE)["interval_unit"] == "sentence"


def collected(outcomes: list[UtteranceResult], task: str, settings: dict) -> Results:
    systems = [SystemOutput(task, outcomes)]
    return collect_results(systems, TASK_LEVELS[task], task, f"{task} on dev", settings=settings)


@pytest.mark.parametrize("task", [SPEECH, LANGUAGE, PIPELINE])
def test_tables_show_the_figures(task):
    settings = {"split": "dev", "seen_in_training": {task: None}}
    if task == PIPELINE:
        settings |= {"audio_seconds": 8.0, "seconds": 2.0, "real_time_factor": 0.25}
    text = results_text(collected(OUTCOMES, task, settings))
    assert f"{task} on dev" in text
    assert bool(re.search(r"^syllable error +20\.00 %", text, re.MULTILINE)) == (task != LANGUAGE)
    assert bool(re.search(r"^hanzi error +30\.00 %", text, re.MULTILINE)) == (task != SPEECH)
    assert ("real-time factor 0.2500" in text) == (task == PIPELINE)
    assert "not known" in text


def test_speech(speech_run, tmp_path, capsys, tiny_manifest):
    assert command.main(["speech", str(speech_run), "--output", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert (
        "speech on test" in printed
        and "syllable error" in printed
        and "8 utterances of 4 speakers" in printed
    )
    rows = list(csv.DictReader((tmp_path / "hypotheses.tsv").open(), delimiter="\t"))
    assert [row["id"] for row in rows] == [utterance.id for utterance in read_manifest(tiny_manifest)]
    results = json.loads((tmp_path / "results.json").read_text())
    theirs = jiwer.process_words([row["reference_pinyin"] for row in rows], [row["pinyin"] for row in rows])
    assert results["syllable_error_rate"] == pytest.approx(theirs.wer)
    assert results["counts"]["syllable_error_rate"]["deletions"] == theirs.deletions
    assert results["seen_in_training"] == {"speech": 8}
    assert results["real_time_factor"] > 0
    assert results["audio_seconds"] == pytest.approx(
        sum(utterance.seconds for utterance in read_manifest(tiny_manifest)), 0.01
    )


def test_default_folder_of_the_results(speech_run, language_run, tmp_path, capsys, tiny_manifest):
    run = tmp_path / "moved"
    shutil.copytree(speech_run, run)
    command.main(["speech", str(run), "--limit", "2"])
    command.main(["pipeline", str(run), str(language_run), "--manifest", str(tiny_manifest), "--limit", "2"])
    listed = f"{tiny_manifest.parent.name}-manifest"
    assert {path.relative_to(run).as_posix() for path in run.glob("test/*/*")} == {
        "test/test-first2/hypotheses.tsv",
        "test/test-first2/results.json",
        f"test/{listed}-first2-with-language/hypotheses.tsv",
        f"test/{listed}-first2-with-language/results.json",
    }
    results = json.loads((run / "test" / "test-first2" / "results.json").read_text(encoding="utf-8"))
    assert results["limit"] == 2


def test_recordings_that_cannot_be_read_are_left_out(speech_run, language_run, tmp_path, capsys):
    """As one of them may be found after hours, the results of the others are kept."""
    manifest = write_tiny_corpus(tmp_path / "corpus", utterances=4)
    first, *others = read_manifest(manifest)
    damaged = (first, others[1])
    for utterance in damaged:
        utterance.audio.write_bytes(utterance.audio.read_bytes()[:60])
    runs = [str(speech_run), str(language_run)]
    options = ["--manifest", str(manifest), "--output", str(tmp_path), "--report", str(tmp_path / "report")]
    assert command.main([PIPELINE, *runs, *options]) == 1
    printed = capsys.readouterr().err
    assert all(f"where: {utterance.audio}\n" in printed for utterance in damaged)
    assert printed.endswith(f"2 of 4 recordings could not be read: {first.id}, {others[1].id}\n")
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert (results["rejected"], results["utterances"]) == (2, 2)
    rows = csv.DictReader((tmp_path / "hypotheses.tsv").open(encoding="utf-8"), delimiter="\t")
    assert [(row["id"], row["reference_hanzi"]) for row in rows] == [
        (utterance.id, utterance.hanzi) for utterance in (others[0], others[2])
    ]
    for utterance in others:
        utterance.audio.write_bytes(b"")
    with pytest.raises(AudioError, match=re.escape(first.id)):  # there is nothing to report
        command.main([PIPELINE, *runs, *options])


def test_pipeline_as_json_in_a_process_of_its_own(speech_run, language_run, tmp_path):
    """Standard output has only the JSON and standard error nothing: TensorFlow's start-up is silent."""
    arguments = ["pipeline", speech_run, language_run, "--beam", "4", "--json", "--output", tmp_path]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, ROOT / "test.py", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    results = json.loads(done.stdout)
    assert results == json.loads((tmp_path / "results.json").read_text())
    assert results["beam"] == 4
    assert results["seen_in_training"] == {"speech": 8, "language": None}
    assert 0 <= results["cer_from_gold_pinyin"] <= results["cer"]
    assert set(results["intervals"]) == {
        "syllable_error_rate",
        "toneless_syllable_error_rate",
        "tone_error_rate",
        "cer",
        "sentence_error_rate",
    }


def test_language_needs_no_audio(language_run, tmp_path):
    transcripts = tmp_path / "lists" / "list.tsv"
    transcripts.parent.mkdir()
    transcripts.write_text("a\two3 hao3\t我好\nb\two3 hao3\t我好\nc\tni3 hao3\t尼好\n")
    arguments = ["language", str(language_run), "--manifest", str(transcripts), "--output", str(tmp_path)]
    assert command.main(arguments) == 0
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["cer"] == 1 / 6
    assert results["split"] == "lists-list"
    assert "real_time_factor" not in results


def test_results_of_a_packed_model_do_not_change_the_checkout(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("list.tsv").write_text("a\two3 hao3\t我好\n")
    assert command.main(["language", str(PRETRAINED), "--manifest", "list.tsv", "--json"]) == 0
    results = Path("runs/packed", PRETRAINED.name, "test", f"{tmp_path.name}-list", "results.json")
    assert json.loads(capsys.readouterr().out) == json.loads(results.read_text())
    assert not RunFolder(PRETRAINED).tests.exists()


def test_report_of_the_pipeline(speech_run, language_run, tmp_path):
    runs = [str(speech_run), str(language_run)]
    options = ["--beam", "3", "--report", str(tmp_path / "report"), "--output", str(tmp_path)]
    assert command.main([PIPELINE, *runs, *options]) == 0
    facts = json.loads((tmp_path / "report" / "report.json").read_text())
    results = json.loads((tmp_path / "results.json").read_text())
    (system,) = facts["systems"]
    assert (facts["task"], facts["utterances"], facts["speakers"]) == (PIPELINE, 8, 4)
    assert facts["settings"]["beam"] == 3
    assert system["attribution_basis"] == "gold pass"
    assert system["kinds"]["hanzi"] == results["error_types"]["hanzi"]
    assert system["attribution"] == results["error_types"]["attribution"]
    assert system["unknown_kinds"] == []
    oracles = {(oracle["level"], oracle["name"]): oracle["counts"] for oracle in system["oracles"]}
    perfect = oracles["hanzi", "stage one perfect"]
    assert perfect["substitutions"] / perfect["reference"] == results["cer_from_gold_pinyin"]
    assert ("syllables", "best of the n best") in oracles
    assert {each["name"] for each in system["breakdowns"] if each["level"] == "syllables"} == {
        "speaker",
        "utterance length",
        "position in the sentence",
        "syllable frequency in training",
        "sentence in training",
        "speaking rate",
        "signal-to-noise ratio",
        "pitch of the voice",
    }
    assert system["attribution"]["search"] == 0  # random weights: the reference syllables never score better
    utterance = system["utterances"][0]
    assert Path(utterance["audio"]).is_file() and utterance["snr"] > 10
    assert len(utterance["n_best"]) == 3 and len(utterance["times"]) == len(utterance["pinyin"].split())


@pytest.mark.parametrize("search", [["--beam", "4"], ["--joint", "--joint-bonus", "50"]])
def test_n_best_lists_and_the_errors_of_their_best(speech_run, language_run, tmp_path, capsys, search):
    call = [PIPELINE, str(speech_run), str(language_run), "--output", str(tmp_path), *search]
    assert command.main([*call, "--n-best", "3"]) == 0
    printed = capsys.readouterr().out
    lines = [json.loads(line) for line in (tmp_path / "n_best.jsonl").read_text("utf-8").splitlines()]
    rows = list(csv.DictReader((tmp_path / "hypotheses.tsv").open(encoding="utf-8"), delimiter="\t"))
    assert [line["id"] for line in lines] == [row["id"] for row in rows]
    best = {"syllables": 0, "hanzi": 0}
    for line, row in zip(lines, rows, strict=True):
        n_best = line["n_best"]
        assert 1 <= len(n_best) <= 3 and max(len(each["n_best"]) for each in lines) > 1
        assert (line["hanzi"], line["pinyin"]) == (row["hanzi"], row["pinyin"])
        assert {key: n_best[0][key] for key in ("hanzi", "pinyin")} == {
            key: row[key] for key in ("hanzi", "pinyin")
        }
        scores = [each["score"] for each in n_best]
        assert scores == sorted(scores, reverse=True)
        for level, key, split in (("syllables", "pinyin", str.split), ("hanzi", "hanzi", list)):
            reference = split(row[f"reference_{key}"])
            best[level] += min(Levenshtein.distance(reference, split(each[key])) for each in n_best)
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["n_best"] == 3
    for level, rate in (("syllables", "syllable_error_rate"), ("hanzi", "cer")):
        oracle = best[level] / results["counts"][rate]["reference"]
        assert results["best_of_n_best"][level] == pytest.approx(oracle)
        assert re.search(rf"^{level}, best of the n best +{100 * oracle:.2f} %", printed, re.MULTILINE)
    # The file can be compared with the output of other recognisers.
    assert set(read_text_file(tmp_path / "n_best.jsonl").lines) == {row["id"] for row in rows}
    command.main(call)
    assert not (tmp_path / "n_best.jsonl").exists()
    assert "best_of_n_best" not in json.loads((tmp_path / "results.json").read_text())


def test_an_n_best_list_needs_a_beam(speech_run, tmp_path):
    with pytest.raises(ConfigError, match=r"5 hypotheses from a beam of 1.*use a beam of at least 5"):
        command.main([SPEECH, str(speech_run), "--n-best", "5", "--output", str(tmp_path)])


def test_the_report_has_sound_and_picture_of_the_worst_utterances(speech_run, tmp_path):
    folders = ["--report", str(tmp_path / "report"), "--output", str(tmp_path)]
    for examples in (0, 2):
        command.main([SPEECH, str(speech_run), "--examples", str(examples), *folders])
        page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
        for kind in ("image/webp", "audio/mpeg"):
            assert page.count(f"data:{kind};base64,") == examples


def test_language_on_plain_text_and_on_the_recorded_manifest(language_run, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("我好\n你好\n")
    for arguments, utterances in ((["--manifest", str(text)], 2), ([], 8)):
        command.main(["language", str(language_run), *arguments, "--output", str(tmp_path)])
        assert json.loads((tmp_path / "results.json").read_text())["utterances"] == utterances


@pytest.fixture
def orphaned_run(speech_run: Path, tmp_path: Path) -> Path:
    """A run whose config names missing lists."""
    run = tmp_path / "orphan"
    shutil.copytree(speech_run, run)
    config = (run / "config.yaml").read_text()
    write_text(run / "config.yaml", config.replace("manifest.tsv", "gone.tsv"))
    return run


def test_a_missing_corpus_is_named(orphaned_run, tiny_manifest, tmp_path):
    with pytest.raises(RunError, match=r"no longer exists.*gone\.tsv.*pass --manifest FILE"):
        command.main(["speech", str(orphaned_run)])
    arguments = [
        "speech",
        str(orphaned_run),
        "--manifest",
        str(tiny_manifest),
        "--output",
        str(tmp_path / "out"),
    ]
    assert command.main(arguments) == 0
    assert json.loads((tmp_path / "out/results.json").read_text())["seen_in_training"] == {"speech": None}


def test_an_empty_list(language_run, tmp_path):
    (tmp_path / "empty.tsv").write_text("")
    with pytest.raises(CorpusError, match="no utterance"):
        command.main(["language", str(language_run), "--manifest", str(tmp_path / "empty.tsv")])


def test_runs_in_the_wrong_order(speech_run, language_run):
    with pytest.raises(RunError, match="task 'language', not 'speech'"):
        command.main(["pipeline", str(language_run), str(speech_run)])
