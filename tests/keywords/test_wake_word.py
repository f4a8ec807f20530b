"""Tests of wake_word.py: word and negatives, clips, training, calibrated bundle, kills, user errors."""

import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from analysis.keyword.detections import SpokenKeyword
from analysis.keyword.wake_word_report import detections_by_kind
from bundle.folder import open_bundle
from data.synthesis import acoustics
from data.synthesis.wake_word_clips import WakeWordSettings, choose_stream_clips, find_negatives, plan_clips
from data.synthesis.wake_words import (
    NEAR_KINDS,
    near_phrases,
    near_words,
    parts_of,
    read_wake_word,
    sounds_like,
)
from keywords import wake_word
from keywords.backgrounds import background_recordings, stream_halves
from streaming.keyword import Detection, DetectionConfig
from tests.support.scripts import load_script
from utils.audio.reading import SAMPLE_RATE
from utils.audio.samples import write_wav
from utils.errors import AudioError, CorpusError, RunError, UserError
from utils.files import write_text
from utils.mandarin.syllable_distance import NEAR, phrase_distance
from utils.run_folder.temporary import is_temporary

command = load_script("wake_word.py")
WORD = read_wake_word("你好小明")
NO_SYNTHESISER = importlib.util.find_spec("espeakng_loader") is None
synthesised = pytest.mark.skipif(
    NO_SYNTHESISER, reason="no synthesiser: pip install -r requirements/demo.txt"
)


# ------------------------------------------------------------------ the word and its negatives


def test_a_word_is_read_with_all_its_forms():
    assert WORD.syllables == ("ni3", "hao3", "xiao3", "ming2")
    assert set(WORD.forms) == {(a, b, "xiao3", "ming2") for a in ("ni3", "ni2") for b in ("hao3", "hao2")}
    assert read_wake_word("重庆").syllables == ("chong2", "qing4")
    assert read_wake_word("行长", "xíng cháng").syllables == ("xing2", "chang2")
    assert read_wake_word("hey Bob", "hei1 ba1 bo2").forms == (("hei1", "ba1", "bo2"),)
    siri = read_wake_word("hey siri")
    assert siri.syllables == siri.forms[0] == ("hei1", "xi1", "rui4") and ("hei1", "xi1", "li4") in siri.forms
    assert all(negative.hanzi == "" for negative in parts_of(siri))


@pytest.mark.parametrize(
    ("hanzi", "pinyin", "message"),
    [
        ("你好！小明", "", "the wake word '你好！小明' has characters that are not hanzi: '！'"),
        ("hey Bob", "", "no reading of 'hey Bob' is known"),
        ("OK OK OK OK", "", "8 syllables, more than 6"),
        ("", "", "the wake word is empty"),
        ("你好小明你好小明", "", "8 syllables, more than 6"),
        ("你好", "ni3", "1 syllables for '你好'"),
        ("你好", "ni hao3", "'ni' in the reading 'ni hao3' has no tone"),
        ("你好", "ni3 hxo3", "is not pinyin"),
    ],
)
def test_invalid_wake_words_are_refused(hanzi, pinyin, message):
    with pytest.raises(CorpusError, match=message):
        read_wake_word(hanzi, pinyin)


@pytest.mark.parametrize("hanzi", ["你好小明", "小爱同学", "天猫精灵", "老板你好", "不一样", "打开", "好"])
def test_no_negative_sounds_as_the_word(hanzi):
    word = read_wake_word(hanzi)
    near = near_phrases(word)
    for negative in (*near, *parts_of(word), *near_words(word)):
        assert not sounds_like(negative.syllables, word), negative
        assert negative.distance == min(phrase_distance(negative.syllables, form) for form in word.forms) > 0
    for negative in near:
        assert negative.kind in NEAR_KINDS and 0 < negative.distance <= NEAR
        assert len(negative.syllables) == len(word.syllables)
    assert [phrase.distance for phrase in near] == sorted(phrase.distance for phrase in near)
    assert len({phrase.syllables for phrase in near}) == len(near) >= 20


def test_the_most_confusable_come_first_and_sandhi_is_the_word():
    near = {phrase.syllables: phrase for phrase in near_phrases(WORD)}
    first = list(near)[:14]
    for confusable in ("li3 hao3 xiao3 ming2", "ni3 hao3 xiao3 min2", "ni3 hao4 xiao3 ming2"):
        assert tuple(confusable.split()) in first
    assert near["li3", "hao3", "xiao3", "ming2"].kind == "initial"
    assert near["ni3", "hao3", "xiao3", "min2"].kind == "final"
    for same in ("ni2 hao3 xiao3 ming2", "ni2 hao2 xiao3 ming2", "ni3 hao2 xiao3 ming2"):
        assert tuple(same.split()) not in near and sounds_like(same.split(), WORD)
    assert sounds_like(["wo3", "shuo1", "ni3", "hao3", "xiao3", "ming2", "le5"], WORD)
    assert not sounds_like(["ni3", "hao3", "xiao3"], WORD)
    zh = near_phrases(read_wake_word("智能"))
    assert ("zi4", "neng2") in [phrase.syllables for phrase in zh[:12]]


def test_parts_repeated_and_swapped():
    found = {part.hanzi: part.kind for part in parts_of(WORD)}
    assert found["你好"] == found["小明"] == found["好小明"] == "part"
    assert found["你好你好"] == "repeated" and found["小明你好"] == found["明小好你"] == "order"
    assert "你好小明" not in found and parts_of(read_wake_word("好")) == []
    assert {word.hanzi for word in near_words(WORD)} >= {"只好", "良好"}


# ------------------------------------------------------------------ clips


def test_voices_and_sentences_of_a_split_are_in_no_other():
    settings = WakeWordSettings(voices=12, takes=3, sentences=4)
    plan, negatives = plan_clips(WORD, settings), find_negatives(WORD, 0)
    voices = [{clip.voice.name for clip in clips} for clips in plan.values()]
    assert sum(map(len, voices)) == len(set.union(*voices)) == 12
    sentences = [
        {
            clip.number
            for clip in clips
            if clip.label == "_unknown_" and negatives[clip.number].kind == "sentence"
        }
        for clips in plan.values()
    ]
    assert sum(map(len, sentences)) == len(set.union(*sentences))
    assert not any(sounds_like(negative.syllables, WORD) for negative in negatives)
    takes = {(clip.syllables, clip.pauses) for clip in plan["train"] if clip.label == WORD.hanzi}
    assert takes == {(WORD.forms[0], ()), (WORD.forms[0], (2,)), (WORD.forms[1], ())}


def test_the_nearest_phrases_are_spoken_in_the_test_split_only():
    """Training on phrases with another tone as negatives would lower the recall; they are only counted."""
    plan, negatives = plan_clips(WORD, WakeWordSettings(voices=24)), find_negatives(WORD, 0)
    nearest = {
        split: min(negatives[clip.number].distance for clip in clips if clip.label != WORD.hanzi)
        for split, clips in plan.items()
    }
    assert nearest["train"] == nearest["dev"] == 40
    assert nearest["test"] < 40


def test_a_long_recording_is_mostly_ordinary_speech():
    settings = WakeWordSettings(voices=12, takes=3)
    clips = choose_stream_clips(Path("clips"), WORD, settings, plan_clips(WORD, settings)["test"], 3600)
    counts = {label: sum(clip.label == label for clip in clips) for label in {clip.label for clip in clips}}
    near = sum(counts.get(kind, 0) for kind in NEAR_KINDS)
    assert counts["sentence"] == 540 and counts[WORD.hanzi] == 135 and near == 45 and len(clips) == 900


# ------------------------------------------------------------------ figures


def test_detections_are_counted_by_the_kind_of_phrase():
    spoken = [
        SpokenKeyword(0, 1, "你好"),
        SpokenKeyword(5, 6, "tone"),
        SpokenKeyword(9, 10, "tone"),
        SpokenKeyword(14, 15, "sentence"),
    ]
    detections = [Detection(at, "你好", 0.9, 0.5) for at in (1.1, 6.2, 30.0)]
    assert detections_by_kind(detections, spoken, "你好", 1.0) == {
        "sentence": (1, 0),
        "tone": (2, 1),
        "between": (1 - 1, 1),
    }
    late = [Detection(at, "你好", 0.9, 0.5) for at in (2.4, 11.4)]
    assert detections_by_kind(late, spoken, "你好", 1.5) == {"sentence": (1, 0), "tone": (2, 1)}


class Deaf:
    """Counts the samples that it receives; one result for each call of 0.1 s."""

    call_seconds = 0.1

    def __init__(self):
        self.fed: list[int] = []

    def reset(self):
        self.fed.append(0)

    def feed(self, samples):
        self.fed[-1] += len(samples)
        return np.zeros((1, 2))


def test_the_halves_of_a_background_share_no_sound(tmp_path):
    for name, seconds in (("long", 90), ("short_1", 10), ("short_2", 20)):
        write_wav(tmp_path / f"{name}.wav", np.zeros(seconds * 1000, np.float32), 1000)
    listener = wake_word.Listener(Deaf(), ("_unknown_", "你好"), DetectionConfig.for_clip(1000), 10, 1000)
    first, second = stream_halves(listener, background_recordings([tmp_path]))
    assert (first.seconds, second.seconds) == (45 + 5 + 10, 45 + 5 + 10)
    silence = 2 * 1300  # before and after, as long as the window and the average
    assert listener.stream.fed == [60_000 + silence, 60_000 + silence]
    assert first.probabilities.shape == (600 + 2 * 13, 2)


# ------------------------------------------------------------------ the command

FEW = WakeWordSettings(voices=6, takes=3, near=3, parts=2, words=1, sentences=2)
TINY = ("--small", "--steps", "12", "--hours", "0.02", "--workers", "1")
NARROW = (
    *("features.mel_bins=16", "model.first_filters=8", "model.channels=[8]", "model.strides=[[2,2]]"),
    *("data.context_ms=100", "training.batch_clips=24", "model.dropout=0"),
)


@pytest.fixture(scope="module", autouse=True)
def few_clips():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "SMALL", FEW)
        yield


@pytest.fixture(scope="module")
def background(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("background")
    noise = np.random.default_rng(1).standard_normal(62 * SAMPLE_RATE).astype(np.float32)
    write_wav(folder / "kitchen.wav", 0.05 * noise)
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory, background, nightly) -> tuple[Path, list[str]]:
    """A complete run, killed once before it finished; with --nightly once in each stage."""
    output = tmp_path_factory.mktemp("wake") / "xiao_ming"
    words = ["小明小明", "--output", str(output), *TINY, "--background", str(background), *NARROW]
    words += ["--alarms-per-hour", "150"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(acoustics, "_NOISE_SECONDS", 3)
        stages = ("generate", "_stream", "_export", "_calibrate")
        for stage in stages if nightly else stages[-2:-1]:
            with pytest.MonkeyPatch.context() as kill:
                kill.setattr(wake_word, stage, _killed_at_the_end(getattr(wake_word, stage)))
                with pytest.raises(KeyboardInterrupt):
                    command.main(words)
        assert command.main(words) == 0
    return output, words


def _killed_at_the_end(stage):
    def killed(*arguments):
        stage(*arguments)
        raise KeyboardInterrupt

    return killed


@synthesised
def test_the_command_leaves_a_bundle_with_its_threshold_and_a_report(made, capsys):
    output, _ = made
    bundle, report = open_bundle(output / "export"), json.loads((output / "report.json").read_text("utf-8"))
    bundle.check()
    assert bundle.labels == ("_silence_", "_unknown_", "小明小明")
    assert bundle.decoding["threshold"] == report["chosen"]["threshold"] == report["calibrated"]["threshold"]
    detected = report["chosen"]["missed"] < report["chosen"]["spoken"]
    assert (bundle.decoding["onset_ms"] > 0) == detected  # from the beginning of the word to its detection
    assert list(bundle.artefacts) == [
        "litert/stream_external_float.tflite",
        "onnx/stream_external_float.onnx",
    ]
    assert bundle.metadata["features"]["kind"] == "raw"  # it takes samples
    assert report["calibrated"]["false_alarms_per_hour"] <= 150
    assert report["calibration_hours"] == pytest.approx(31 / 3600) == report["hours"]
    text = (output / "report.md").read_text(encoding="utf-8")
    for fact in (
        "# 小明小明 (xiao3 ming2 xiao3 ming2)",
        "recall",
        "the user's recordings",
        "python listen.py",
    ):
        assert fact in text
    assert "cannot confirm 150" in text, "half a minute is too short for a rate"
    assert "give at least 0.04 h of background" in text
    names = {path.name for path in output.iterdir()}
    assert names >= {"clips", "run", "streams", "export", "trade_off", "report.md", "report.json"}
    assert not [name for name in names if is_temporary(Path(name))]
    assert {"trade_off.tsv", "trade_off.png"} <= {path.name for path in (output / "trade_off").iterdir()}
    assert "xiao3 ming2" in (output / "clips" / "negatives.tsv").read_text(encoding="utf-8")


@synthesised
def test_a_finished_word_is_only_calibrated_again(made, capsys):
    output, words = made
    before = {path: path.stat().st_mtime_ns for path in output.rglob("*") if path.is_file()}
    assert command.main([*words, "--alarms-per-hour", "1000"]) == 0
    assert "listen: python listen.py" in capsys.readouterr().out
    changed = {path.name for path, time in before.items() if path.stat().st_mtime_ns != time}
    assert {"report.json", "bundle.json", "trade_off.tsv"} <= changed
    assert not changed & {"stream_external_float.tflite", "best.weights.h5", "corpus.json", "stream.flac"}


@synthesised
def test_another_recipe_for_a_finished_word_is_refused(made, tmp_path):
    _, words = made
    recipe = tmp_path / "recipe.yaml"
    text = command.RECIPE.read_text(encoding="utf-8")
    recipe.write_text(text.replace("0.006", "0.005"), encoding="utf-8")
    for more, difference in (
        (["model.dropout=0.25"], r"model\.dropout: 0\.0 there, 0\.25 asked"),
        (["--config", str(recipe)], r"optimiser\.learning_rate: 0\.006 there, 0\.005 asked"),
        (["--steps", "14"], r"training\.evaluation_steps: 12 there, 14 asked"),
    ):
        with pytest.raises(RunError, match=difference) as caught:
            command.main([*words, *more])
        assert "--output" in caught.value.hint


def _interrupt(*arguments, **options):
    raise KeyboardInterrupt


@synthesised
def test_an_unreachable_alarm_rate_is_reported_with_the_reachable_rate(made, monkeypatch):
    output, words = made
    monkeypatch.setattr("keywords.calibration.THRESHOLDS", (0.0,))
    with pytest.raises(CorpusError, match=r"no threshold keeps to 0\.5 false alarms an hour: at 0 there are"):
        command.main([*words, "--alarms-per-hour", "0.5"])
    assert open_bundle(output / "export").decoding["threshold"] > 0.01


@synthesised
def test_another_word_or_other_clips_in_the_same_folder_are_refused(made):
    _, words = made
    for other in (["天猫天猫", *words[1:]], [word for word in words if word != "--small"]):
        with pytest.raises(CorpusError, match="a corpus of other settings") as caught:
            command.main(other)
        assert "choose another folder" in caught.value.hint


@synthesised
def test_after_the_run_was_deleted_it_is_trained_and_exported_again(made, tmp_path, monkeypatch):
    output = shutil.copytree(made[0], tmp_path / "唤醒词 #1: a")  # has a meaning in YAML and in shells
    words = [*made[1][:2], str(output), *made[1][3:], "seed=2"]  # other weights, so another export
    shutil.rmtree(output / "run")
    monkeypatch.setattr("bundle.export.keyword_source.keyword_source", _interrupt)
    with pytest.raises(KeyboardInterrupt):
        command.main(words)
    assert (output / "run" / "best.weights.h5").is_file() and not (output / "export").exists()


def test_hours_too_short_for_the_word_are_an_error_before_the_training(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(wake_word, "generate", lambda *_: {"dev": [], "test": []})
    monkeypatch.setattr(wake_word, "choose_stream_clips", lambda *_: [])
    monkeypatch.setattr(wake_word, "find_recordings", lambda _: [])

    def write_other_words(folder: Path, *_, **__) -> None:
        write_text(folder / "spoken.tsv", "start\tend\tkeyword\n1\t2\tsentence\n")

    monkeypatch.setattr(wake_word, "write_long_recording", write_other_words)
    with pytest.raises(CorpusError, match="does not contain '小明小明'") as caught:
        command.main(["小明小明", "--output", str(tmp_path / "word"), "--hours", "0.001"])
    assert caught.value.where == tmp_path / "word" / "streams" / "test_0.001h"
    assert "--hours" in caught.value.hint
    assert "training" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["model.dropuot=0.2"], r"unknown key 'model\.dropuot'"),
        (["training.batch_clips=0"], r"training\.batch_clips is 0"),
        (["--config", "absent.yaml"], "no such config file"),
        (["model.channels=[8]"], "strides"),
        (["--config", "att_rnn.yaml"], "can't stream"),
        (["--background", "short.wav"], "too little background"),
        (["--background", "short.wav", "--background", "./short.wav"], "too little background"),
    ],
)
def test_settings_are_checked_before_any_work(tmp_path, monkeypatch, words, message):
    if "--config" not in words:
        words = [*words, "--config", str(command.RECIPE)]
    monkeypatch.chdir(tmp_path)
    write_wav(tmp_path / "short.wav", np.zeros(10 * SAMPLE_RATE, np.float32))
    (tmp_path / "att_rnn.yaml").write_text("model: {name: att_rnn}", encoding="utf-8")
    with pytest.raises(UserError, match=message):
        command.main(["你好小明", "--output", "none", *words])
    assert not Path("none").exists()


def test_mistakes_are_reported_before_any_work(tmp_path, capsys):
    output = ["--output", str(tmp_path / "none")]
    with pytest.raises(AudioError, match="no such folder of background recordings"):
        command.main(["你好小明", *output, "--background", str(tmp_path / "absent")])
    (tmp_path / "broken.wav").write_bytes(b"RIFF")
    with pytest.raises(AudioError, match=r"broken\.wav"):
        command.main(["你好小明", *output, "--background", str(tmp_path)])
    with pytest.raises(CorpusError, match="'小，明' has characters that are not hanzi: '，'"):
        command.main(["小，明", *output])
    assert not (tmp_path / "none").exists()


def test_a_word_of_one_syllable_gives_a_warning(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "make_wake_word", lambda request: ["told"])
    assert command.main(["好", "--output", str(tmp_path)]) == 0
    found = capsys.readouterr()
    assert "one syllable" in found.err and "told" in found.out
