"""Tests of the shipped acoustic model: size, card, checksums, and recognition of real recordings."""

import numpy as np

from model_language.registry import load_converter, needs_syllable_ngram
from model_speech.acoustic_logits import load_acoustic_logits
from model_speech.acoustic_model import load_acoustic_model
from recognition.confidence import Calibration, load_calibration
from recognition.loading import load_joint_search_for
from recognition.recognizer import Recognizer
from tests.support.recordings import FOLDER, RECORDING, SYLLABLES
from utils.audio.levels import decibels
from utils.audio.reading import SAMPLE_RATE, read_audio
from utils.audio.samples import write_wav
from utils.metrics import count_errors, total
from utils.run_folder.checksums import differences
from utils.run_folder.run import PRETRAINED, PRETRAINED_SPEECH


def test_the_model_is_small_undamaged_and_has_a_card():
    files = [path for path in PRETRAINED_SPEECH.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 24_000_000
    assert differences(PRETRAINED_SPEECH) == {}
    card = (PRETRAINED_SPEECH / "README.md").read_text(encoding="utf-8")
    assert all(word in card for word in ("Whisper", "Common Voice", "CC BY-SA", "## Limits", "## Results"))
    texts = [path.read_text(encoding="utf-8") for path in files if path.suffix in (".yaml", ".json")]
    assert not any(path in text for path in ("/home", ".tsv", ": /") for text in texts)


def test_the_shipped_recordings_are_recognised():
    recognizer = Recognizer(load_acoustic_logits(PRETRAINED_SPEECH))
    results = list(recognizer.recognise((name, FOLDER / name) for name in SYLLABLES))
    errors = total(count_errors(SYLLABLES[result.id].split(), result.pinyin) for result in results)
    assert errors.reference == 35 and errors.rate < 0.3


def test_a_recording_without_speech_has_neither_syllables_nor_confidences(tmp_path):
    write_wav(tmp_path / "silence.wav", np.zeros(2 * SAMPLE_RATE, np.float32))
    acoustic, calibration = load_acoustic_logits(PRETRAINED_SPEECH), load_calibration(PRETRAINED_SPEECH)
    joint = load_joint_search_for(PRETRAINED_SPEECH, load_converter(PRETRAINED))
    recognizer = Recognizer(acoustic, joint=joint, calibration=calibration)
    (found,) = recognizer.recognise([("silence", tmp_path / "silence.wav")])
    assert (found.pinyin, found.hanzi, found.confidence) == ((), "", ())


def test_the_shipped_converter_needs_no_syllables_in_the_joint_search(tmp_path):
    """Its weights and second pass stay, and the n-gram (here a folder without one) is not loaded."""
    converter = load_converter(PRETRAINED)
    assert not needs_syllable_ngram(converter)
    usual = load_joint_search_for(PRETRAINED_SPEECH, converter)
    with_syllables = load_joint_search_for(PRETRAINED_SPEECH, converter, syllables=tmp_path)
    assert with_syllables._weights == usual._weights and with_syllables._second_pass is not None


def test_the_times_of_syllables_have_their_borders_where_the_sound_is_quiet():
    """Without the measured lead they are nearer to the vowels."""
    acoustic = load_acoustic_logits(PRETRAINED_SPEECH)
    below = []
    for calibration in (load_calibration(PRETRAINED_SPEECH), Calibration({})):
        recognizer, borders, middles = Recognizer(acoustic, calibration=calibration), [], []
        for name in SYLLABLES:
            samples = read_audio(FOLDER / name)
            (result,) = recognizer.recognise([(name, FOLDER / name)])
            power = np.convolve(np.square(samples, dtype=np.float64), np.ones(480) / 480, "same")
            level = decibels(power)
            times = (SAMPLE_RATE * np.array(result.times)).astype(int)
            borders += level[times[1:, 0]].tolist()
            middles += level[times.mean(axis=1).astype(int)].tolist()
        below.append(np.mean(middles) - np.mean(borders))
    assert below[0] > 4.0 and below[0] > below[1] + 1.0


def test_keras_recognises_the_same_syllables():
    loaders = (load_acoustic_logits, load_acoustic_model)
    numpy, keras = (Recognizer(load(PRETRAINED_SPEECH)) for load in loaders)
    found = [[result.pinyin for result in each.recognise([("clip", RECORDING)])] for each in (numpy, keras)]
    assert found[0] == found[1]


def test_tones_that_the_model_hears_as_one_syllable_have_no_text(monkeypatch):
    rng, rate = np.random.default_rng(6), 8_000
    time, pause = np.arange(rate // 5) / rate, np.zeros(3 * rate // 10)
    beeps = [
        0.4 * np.sign(np.sin(2 * np.pi * pitch * time)) for pitch in rng.choice([800, 1500, 2000, 3000], 10)
    ]
    sound = np.concatenate([part for beep in beeps for part in (beep, pause)])
    sound = (sound + rng.normal(0, 5e-4, len(sound))).astype(np.float32)
    calibration = load_calibration(PRETRAINED_SPEECH)
    recognizer = Recognizer(load_acoustic_logits(PRETRAINED_SPEECH), calibration=calibration)
    assert recognizer.transcribe(sound, rate).pinyin == ()
    monkeypatch.setattr("recognition.recognizer.NO_SPEECH", 1.1)  # never
    assert recognizer.transcribe(sound, rate).pinyin == ("yu3",)
