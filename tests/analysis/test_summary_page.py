"""Tests of the demo's summary page: aligned examples and curves in one self-contained file."""

import html.parser
import json
import re
from pathlib import Path

import pytest
from pypinyin.contrib.tone_convert import to_tone

from analysis.demo.curves import Curve, draw_curve
from analysis.demo.examples import align_example, choose_examples, read_hypotheses
from analysis.demo.summary_page import write_summary_page
from analysis.inputs.utterance_results import PIPELINE, UtteranceResult
from analysis.page.rendering import duration, percent
from analysis.results.result_files import hypotheses_tsv
from analysis.runs.history import read_history
from data.manifest import read_manifest
from tests.support.report_results import score
from tests.support.tiny_corpus import write_tiny_corpus
from utils.errors import CorpusError, RunError

HISTORY = """\
epoch,step,learning_rate,train_loss,dev_loss,dev_syllable_error_rate,dev_character_error_rate,seconds
1,10,0.001,9.5,9.9,0.9,0.9,2.0
2,20,0.001,4.5,5.0,0.25,0.5,2.0
3,30,0.0,3.5,5.1,0.5,0.75,2.0
"""
VOID = {"meta", "br", "img", "link", "hr", "path", "use", "rect"}


def outcomes(manifest: Path) -> list[UtteranceResult]:
    """A third correct, a third with a wrong syllable, a third with a deletion and a wrong character."""
    found = []
    for number, utterance in enumerate(read_manifest(manifest)):
        pinyin, hanzi = list(utterance.pinyin), list(utterance.hanzi)
        if number % 3 == 1:
            pinyin[0], hanzi[0] = "da4", "大"
        if number % 3 == 2:
            pinyin, hanzi = pinyin[:-1], ["<", *hanzi[1:-1]]
        texts = (utterance.pinyin, tuple(pinyin), utterance.hanzi, "".join(hanzi))
        found.append(UtteranceResult(utterance.id, utterance.speaker, utterance.seconds, *texts))
    return found


@pytest.fixture
def demo(tmp_path) -> Path:
    """A folder as the demo leaves it, without the page."""
    manifest = write_tiny_corpus(tmp_path / "corpus", utterances=12)
    tested = outcomes(manifest)
    results = {
        **score(tested, PIPELINE),
        "manifests": [str(manifest)],
        "seen_in_training": {"speech": 0, "language": 0},
        "real_time_factor": 0.01,
        "cer_from_gold_pinyin": 0.0123,
    }
    summary = {
        "seconds": {"corpus": 3.0, "train_speech": 1.0},
        "seconds_when_made": {"corpus": 3.0, "train_speech": 125.0},
        "titles": {"corpus": "a corpus is spoken", "train_speech": "the acoustic model learns"},
        "reused": ["train_speech"],
        "commands": ["python train.py speech --run runs/demo/speech"],
        "transcripts": [{"audio": str(tmp_path / "gone.wav"), "reference": "你好", "hanzi": "你号"}],
        "outputs": {"acoustic model": "runs/demo/speech"},
        "machine": "2 cores",
        "finished": "2020-01-02 03:04",
    }
    for name, text in {
        "test/results.json": json.dumps(results),
        "test/hypotheses.tsv": hypotheses_tsv(tested),
        "speech/history.csv": HISTORY,
        "language/history.csv": HISTORY,
        "summary.json": json.dumps(summary),
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


class Balance(html.parser.HTMLParser):
    """Collects tags that are closed out of order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID and (not self.open or self.open.pop() != tag):
            self.wrong.append(f"</{tag}> in line {self.getpos()[0]}")


def test_the_page_shows_figures_examples_curves_and_paths(demo):
    page = write_summary_page(demo).read_text("utf-8")
    results = json.loads((demo / "test" / "results.json").read_text("utf-8"))
    for name in ("syllable_error_rate", "cer", "sentence_error_rate"):
        assert percent(results[name]) in page
    assert page.count("<svg role=") == 4
    assert page.count('<article class="card example">') == 4 + 4 + 4
    assert '<rt lang="zh-Latn">nǐ</rt>' in page
    for shown in (
        "runs/demo/speech",
        "python train.py speech",
        "2 min 5 s",
        "reused, checked in 1.0 s",
        "2 cores",
    ):
        assert shown in page.replace("\u202f", " ")
    assert "In 2 min 8 s a corpus was synthesised" in page.replace("\u202f", " ")


def test_the_page_needs_nothing_but_itself(demo):
    page = write_summary_page(demo).read_text("utf-8")
    addresses = re.findall(r'(?:src|href|data-sound)="([^"]*)"|url\(([^)]*)\)', page)
    outside = [
        a or b for a, b in addresses if not (a or b).startswith(("data:audio/mpeg;base64,", "data:,", "#"))
    ]
    assert not outside
    assert page.count("data-sound") == 12  # one for each example; gone.wav has none


def test_the_page_is_well_formed_and_escaped(demo):
    page = write_summary_page(demo).read_text("utf-8")
    balance = Balance()
    balance.feed(page)
    assert not balance.wrong and not balance.open
    assert "&lt;<rt" in page
    identifiers = re.findall(r' id="([^"]*)"', page)
    assert len(identifiers) == len(set(identifiers)), "two drawings use one name"


def test_the_page_is_written_without_recordings_or_epochs(demo):
    for audio in (demo / "corpus" / "wav").iterdir():
        audio.unlink()
    (demo / "corpus" / "manifest.tsv").unlink()
    (demo / "language" / "history.csv").unlink()
    page = write_summary_page(demo).read_text("utf-8")
    assert page.count("<svg role=") == 2
    assert "<button" not in page


def test_a_stage_of_unknown_time_is_not_counted(demo):
    summary = json.loads((demo / "summary.json").read_text("utf-8"))
    del summary["seconds_when_made"]["train_speech"]
    (demo / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    page = write_summary_page(demo).read_text("utf-8")
    assert "not known" in page
    assert "a corpus was synthesised" not in page


@pytest.mark.parametrize("name", ["summary.json", "test/results.json", "test/hypotheses.tsv"])
def test_a_missing_or_damaged_part_is_named(demo, name):
    (demo / name).write_text("{", encoding="utf-8")
    with pytest.raises((RunError, CorpusError), match=name):
        write_summary_page(demo)
    (demo / name).unlink()
    with pytest.raises((RunError, CorpusError), match=name):
        write_summary_page(demo)


@pytest.mark.parametrize("errors", ["many", ""])
def test_a_damaged_row_of_hypotheses_is_named(tmp_path, errors):
    header = "id\treference_pinyin\tpinyin\treference_hanzi\thanzi\tsyllable_errors\thanzi_errors\n"
    (tmp_path / "h.tsv").write_text(f"{header}x\tni3\tni3\t你\t你\t0\t{errors}\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"h\.tsv"):
        read_hypotheses(tmp_path / "h.tsv")


@pytest.mark.parametrize("text", ["", "epoch,step\n", "epoch,step\n1,x\n", "epoch,step\n1\n"])
def test_a_damaged_history_is_named(tmp_path, text):
    (tmp_path / "history.csv").write_text(text, encoding="utf-8")
    with pytest.raises(RunError, match=r"history\.csv"):
        read_history(tmp_path / "history.csv")


def test_the_best_epoch_is_marked_and_drawings_repeat_exactly(tmp_path):
    (tmp_path / "history.csv").write_text(HISTORY, encoding="utf-8")
    history = read_history(tmp_path / "history.csv")
    curve = Curve("errors", {"dev_syllable_error_rate": "dev"}, percent=True)
    drawn = draw_curve(history, curve)
    assert "best: 25.00 % in epoch 2" in drawn
    assert drawn == draw_curve(history, curve)


def test_a_history_of_one_epoch_can_be_drawn():
    assert "<svg" in draw_curve({"epoch": [1.0], "loss": [2.0]}, Curve("loss", {"loss": "training"}))


def sentence(spoken: str, recognised: str, spoken_hanzi: str, recognised_hanzi: str):
    spoken, recognised = tuple(spoken.split()), tuple(recognised.split())
    tsv = hypotheses_tsv([UtteranceResult("x", "s", 1.0, spoken, recognised, spoken_hanzi, recognised_hanzi)])
    return tsv


def test_cells_distinguish_wrong_syllables_from_wrong_hanzi(tmp_path):
    path = tmp_path / "hypotheses.tsv"
    path.write_text(sentence("ni3 hao3 ma5 shi4", "ni3 gao3 ma5", "你好吗是", "你搞嘛"), encoding="utf-8")
    (hypothesis,) = read_hypotheses(path)
    example = align_example(hypothesis)
    assert [cell.kind for cell in example.cells] == [
        "correct",
        "wrong-syllable",
        "wrong-hanzi",
        "wrong-syllable",
    ]
    assert [(c.reference_hanzi, c.reference_pinyin, c.hanzi, c.pinyin) for c in example.cells] == [
        ("你", "nǐ", "你", "nǐ"),
        ("好", "hǎo", "搞", "gǎo"),
        ("吗", "ma", "嘛", "ma"),
        ("是", "shì", "", ""),
    ]
    assert example.errors == 3


def test_syllables_without_hanzi_are_shown_alone(tmp_path):
    path = tmp_path / "hypotheses.tsv"
    path.write_text(sentence("ni3 hao3", "ni3 hao4", "", ""), encoding="utf-8")
    example = align_example(read_hypotheses(path)[0])
    assert [(cell.kind, cell.hanzi) for cell in example.cells] == [("correct", ""), ("wrong-syllable", "")]
    assert example.errors == 1


def test_examples_are_the_longest_correct_the_worst_and_a_random_sample(tmp_path):
    manifest = write_tiny_corpus(tmp_path, utterances=30)
    (tmp_path / "h.tsv").write_text(hypotheses_tsv(outcomes(manifest)), encoding="utf-8")
    sentences = read_hypotheses(tmp_path / "h.tsv")
    right, worst, drawn = choose_examples(sentences, right=3, worst=2, drawn=4)
    assert [len(group) for group in (right, worst, drawn)] == [3, 2, 4]
    assert not any(example.errors for example in right) and all(
        example.errors for example in [*worst, *drawn]
    )
    assert len({example.id for example in [*right, *worst, *drawn]}) == 9
    assert len(right[0].pinyin) == max(len(sentence.pinyin) for sentence in sentences if not sentence.errors)
    assert (right, worst, drawn) == choose_examples(sentences, right=3, worst=2, drawn=4)


@pytest.mark.parametrize(
    ("syllable", "marked"), [("zhong1", "zhōng"), ("nv3", "nǚ"), ("lve4", "lüè"), ("de5", "de"), ("", "")]
)
def test_tone_marks(syllable, marked):
    assert to_tone(syllable) == marked


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (9.7, "9.7 s"), (31.5, "32 s"), (374.2, "6 min 14 s"), (3900, "1 h 5 min")],
)
def test_durations(seconds, text):
    assert duration(seconds).replace("\u202f", " ") == text
