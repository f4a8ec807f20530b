"""Tests of python -m recognition.align: a known text in recordings of people."""

import json

import numpy as np
import pytest

from data.manifest import Utterance, write_manifest
from model_speech.acoustic_logits import load_acoustic_logits
from recognition.align import KnownText, align_recording, main
from tests.support.recordings import RECORDINGS
from utils.audio.reading import read_audio
from utils.errors import CorpusError
from utils.run_folder.run import PRETRAINED_SPEECH

TEXTS = {
    "common_voice_18735239": "此外，一些其他国际比赛也使用此规则。",
    "common_voice_18776500": "如果无法控制",
    "common_voice_18662996": "该地区的希腊人供奉圣尼各老",
}


@pytest.fixture(scope="module")
def acoustic():
    return load_acoustic_logits(PRETRAINED_SPEECH)


def text_of(path):
    return KnownText.read(TEXTS[path.stem], path.name)


def test_the_times_are_those_of_the_speech(acoustic):
    """Behind a long pause they come later by its length; the pause belongs to no syllable."""
    first, second = RECORDINGS[:2]
    rate, pause = acoustic.features.sample_rate, 3.0
    parts = [read_audio(path, rate) for path in (first, second)]
    alone = [align_recording(acoustic, path, text_of(path)) for path in (first, second)]
    both = KnownText.read(TEXTS[first.stem] + TEXTS[second.stem], "both")
    silence = np.zeros(round(pause * rate), np.float32)
    joined = align_recording(acoustic, np.concatenate([parts[0], silence, parts[1]]), both)
    assert joined.hanzi == alone[0].hanzi + alone[1].hanzi
    later = len(parts[0]) / rate + pause
    expected = [*alone[0].times, *((start + later, end + later) for start, end in alone[1].times)]
    np.testing.assert_allclose(joined.times, expected, atol=0.1)
    assert all(0 < end - start <= 0.5 for start, end in joined.times)


def test_a_wrong_word_is_improbable(acoustic):
    path = next(path for path in RECORDINGS if path.stem == "common_voice_18776500")
    right = align_recording(acoustic, path, KnownText.read("ru2 guo3 wu2 fa3 kong4 zhi4", "text"))
    wrong = align_recording(acoustic, path, KnownText.read("如果明天控制", "text"))
    assert min(right.confidence) > 0.3
    assert [sure > 0.3 for sure in wrong.confidence] == [True, True, False, False, True, True]


def test_tone_sandhi_is_no_other_reading(acoustic):
    """In 一些 people say yi4; the dictionary has yi1."""
    path = next(path for path in RECORDINGS if path.stem == "common_voice_18735239")
    aligned = align_recording(acoustic, path, text_of(path))
    assert (aligned.hanzi[2], aligned.pinyin[2]) == ("一", "yi1")
    assert aligned.confidence[2] > 0.5
    citation = align_recording(acoustic, path, KnownText("", aligned.pinyin))
    assert citation.confidence[2] < 0.3


def test_the_text_of_another_recording_gives_a_warning(capsys):
    path = next(path for path in RECORDINGS if path.stem == "common_voice_18776500")
    for text, warns in (("今天天气很好", True), (TEXTS[path.stem], False)):
        assert main([str(path), "--text", text]) == 0
        errors = capsys.readouterr().err
        assert (f"warning: {path}: half of the syllables have a probability of at most" in errors) == warns
        assert "least probable syllables:\n" in errors


def test_a_recording_without_speech_is_refused(acoustic):
    with pytest.raises(CorpusError, match="there is no speech"):
        align_recording(acoustic, np.zeros(32000, np.float32), KnownText.read("如果", "text"))


def test_a_manifest_is_aligned_into_files(tmp_path, capsys):
    texts = {path.stem: (path, text_of(path)) for path in RECORDINGS}
    texts["too_long"] = RECORDINGS[0], KnownText("一" * 300, ("yi1",) * 300)
    utterances = [
        Utterance(name, path, 5.0, "speaker", text.pinyin, text.hanzi) for name, (path, text) in texts.items()
    ]
    write_manifest(tmp_path / "list.tsv", utterances)
    output = tmp_path / "aligned"
    options = ["--manifest", str(tmp_path / "list.tsv"), "--output", str(output)]
    assert main([*options, "--format", "json", "--worst", "2"]) == 1
    messages = capsys.readouterr().err
    assert "300 syllables don't fit into" in messages
    assert "1 of 4 recordings were not aligned" in messages and messages.count(" s  ") == 2
    found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in output.iterdir()}
    assert {name: values["hanzi"] for name, values in found.items()} == {
        path.stem: text_of(path).hanzi for path in RECORDINGS
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("今天3点", "the text has '3' beside hanzi"),
        ("abc", "'abc' is not pinyin"),
        ("，", "the text is empty"),
    ],
)
def test_a_text_that_is_not_spoken_mandarin_is_refused(text, message):
    with pytest.raises(CorpusError, match=message):
        KnownText.read(text, "talk.txt")
