"""Tests of confidence: inputs by hand, a regression that recovers known weights, the commands that use it."""

import json
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import transcribe
from bundle.pack import pack
from data.manifest import Utterance
from model_speech.ctc.shallow_fusion import Fusion
from recognition.calibrate import main, measure_lead, observe
from recognition.confidence import (
    FEATURES,
    FEATURES_OF,
    JOINT,
    JOINT_NGRAM,
    PLAIN,
    Calibration,
    load_calibration,
)
from recognition.recognizer import Recognizer
from tests.support.tiny_corpus import write_tiny_corpus
from utils.audio.samples import write_wav
from utils.errors import ConfigError, CorpusError, RunError
from utils.features.settings import FeatureConfig
from utils.hypotheses.calibration import area_under_curve, calibration_error, logistic_regression
from utils.vocabulary import BLANK, SPACE, Vocabulary


def test_a_fit_finds_the_weights_that_made_the_data_and_is_calibrated():
    rng = np.random.default_rng(2)
    features = rng.normal(size=(20_000, len(FEATURES))) * (1.0, 0.1, 2.0, 0.5)
    weights = np.array([1.2, -3.0, 0.4, -0.7])
    right = rng.random(20_000) < 1.0 / (1.0 + np.exp(-(features @ weights + 0.3)))
    found = tuple(logistic_regression(features, right))
    np.testing.assert_allclose(found, [*weights, 0.3], rtol=0.15, atol=0.08)
    confidence = np.array(Calibration({PLAIN: found}).confidence(PLAIN, features))
    assert calibration_error(confidence, right) < 0.01 < calibration_error(confidence**3, right)
    assert Calibration({PLAIN: found}).confidence(JOINT, features) == ()


def test_with_ngrams_the_weights_of_the_joint_search_serve_where_there_are_no_others():
    features = np.random.default_rng(3).normal(size=(5, len(FEATURES_OF[JOINT_NGRAM])))
    weights = {JOINT: (1.0, -2.0, 0.5, 0.1, 0.3)}
    old, both = Calibration(weights), Calibration(weights | {JOINT_NGRAM: (*weights[JOINT][:4], 0, 0, 0, 5)})
    assert old.covers(JOINT_NGRAM) and not old.covers(PLAIN)
    assert old.confidence(JOINT_NGRAM, features) == both.confidence(JOINT, features)
    assert np.all(np.array(both.confidence(JOINT_NGRAM, features)) > old.confidence(JOINT_NGRAM, features))


def test_area_under_the_curve_equals_the_count_of_pairs():
    rng = np.random.default_rng(5)
    confidence, right = rng.integers(0, 6, 60) / 6, rng.random(60) < 0.6
    pairs = [
        (good > bad) + 0.5 * (good == bad) for good, bad in product(confidence[right], confidence[~right])
    ]
    assert area_under_curve(confidence, right) == pytest.approx(np.mean(pairs))
    assert np.isnan(area_under_curve(confidence, np.ones(60, bool)))


@pytest.fixture(scope="module")
def packed(tmp_path_factory, speech_run) -> Path:
    folder = tmp_path_factory.mktemp("packed") / "run"
    pack(speech_run, folder)
    return folder


def _burst_speaker(at: float) -> tuple[SimpleNamespace, np.ndarray]:
    """An acoustic model that emits a syllable at a fraction of each burst of sound, and the sound."""
    vocabulary, rate = Vocabulary(("ma1", "ni3", SPACE, BLANK)), 8000
    samples, frames = np.full(2 * rate, 1e-3, np.float32), []
    for start, length in ((0.3, 0.2), (0.7, 0.3), (1.2, 0.24), (1.6, 0.26)):
        begin, size = int(start * rate), int(length * rate)
        samples[begin : begin + size] += np.hanning(size).astype(np.float32)
        frames.append(int((start + at * length) / 0.02))

    def logits(features):
        rows = np.zeros((1, 100, 4), np.float32)
        rows[0, :, -1] = 5.0
        rows[0, frames, [0, 1, 0, 1]] = 12.0
        return rows, np.array([100])

    features = FeatureConfig(kind="spectrogram", sample_rate=rate, normalise="none")
    model = SimpleNamespace(logits=logits, vocabulary=vocabulary, features=features, frame_seconds=0.02)
    return model, samples


@pytest.mark.parametrize(("at", "lead"), [(0.0, 0.12), (0.5, 0.0), (0.9, -0.09)])
def test_the_lead_is_the_time_from_the_emission_to_the_loudest_moment(tmp_path, at, lead):
    model, samples = _burst_speaker(at)
    write_wav(tmp_path / "a.wav", samples, 8000)
    spoken = Utterance("a", tmp_path / "a.wav", 2.0, "s", ("ma1", "ni3", "ma1", "ni3"), "妈你妈你")
    unknown = Utterance("b", tmp_path / "a.wav", 2.0, "s", ("zhi1",), "知")
    too_long = Utterance("c", tmp_path / "a.wav", 2.0, "s", ("ma1",) * 120, "妈" * 120)
    assert measure_lead(model, [unknown, spoken, too_long]) == pytest.approx(lead, abs=0.025)
    assert measure_lead(model, [unknown]) == 0.0


@pytest.mark.parametrize(
    ("vocabulary", "expected"),
    [
        (("ma", "ni", SPACE, BLANK), [True, False]),  # a wrong tone is no error of a model without tones
        (("麻", "呢", SPACE, BLANK), [False, False]),  # hanzi of the right sound are
    ],
)
def test_what_is_right_depends_on_the_output_units(vocabulary, expected):
    acoustic = SimpleNamespace(
        features=FeatureConfig(), vocabulary=Vocabulary(vocabulary), frame_seconds=0.08
    )
    recognizer = Recognizer(acoustic)
    logits = np.log(np.full((7, 4), 0.01) + 0.96 * np.eye(4)[[3, 0, 3, 3, 1, 3, 3]])
    (segment,) = recognizer.segments_of_logits(logits.astype(np.float32), 0.0, 0.56)
    recognizer.recognise = lambda _: iter([segment])
    utterance = Utterance("a", Path("a.wav"), 0.56, "s", ("ma1", "hao3"), "妈好")
    assert observe(recognizer, [utterance]).right.tolist() == expected


def test_a_syllable_of_the_language_model_is_as_uncertain_as_the_acoustic_model_says():
    vocabulary = Vocabulary(("ma1", "ma3", SPACE, BLANK))
    acoustic = SimpleNamespace(features=FeatureConfig(), vocabulary=vocabulary, frame_seconds=0.08)
    probabilities = np.full((7, 4), 0.01) + 0.96 * np.eye(4)[3]
    probabilities[3] = [0.80, 0.15, 0.01, 0.04]
    logits = np.log(probabilities).astype(np.float32)
    prefers_ma3 = SimpleNamespace(
        history=1, log_probs=lambda _, tokens: np.where(tokens == 2, np.log(0.9), np.log(0.01))
    )
    fusion = Fusion(prefers_ma3, np.array([1, 2, -1, -1]), 0.8, 0.0)
    calibration = Calibration({PLAIN: (1.0, 0.0, 0.0, 0.0, 0.0)})  # the confidence is the posterior
    for search, expected in (({}, 0.80), ({"beam": 10}, 0.80), ({"beam": 10, "fusion": fusion}, 0.15)):
        recognizer = Recognizer(acoustic, calibration=calibration, **search)
        (segment,) = recognizer.segments_of_logits(logits, 0.0, 0.56)
        assert segment.best.pinyin == (("ma3",) if "fusion" in search else ("ma1",))
        assert segment.confidence == pytest.approx((expected,))


def test_a_calibrated_run_gives_confidences_to_transcripts(
    packed, tmp_path, capsys, language_run, monkeypatch
):
    manifest = write_tiny_corpus(tmp_path / "corpus", utterances=3)
    recording = str(next((tmp_path / "corpus").rglob("*.wav")))
    call = [recording, "--speech", str(packed), "--language", str(language_run), "--format", "json"]
    with pytest.raises(ConfigError, match="needs a calibrated acoustic model"):
        transcribe.main([*call, "--minimum-confidence", "0.5"])
    with pytest.raises(CorpusError, match="too few to fit confidences"):
        main([str(packed), "--manifest", str(manifest)])
    monkeypatch.setattr("recognition.calibrate.MINIMUM", 1)
    # The random model is never right.
    monkeypatch.setattr("recognition.calibrate._correct", lambda _, found: np.arange(len(found)) % 2 == 0)
    capsys.readouterr()
    assert main([str(packed), "--manifest", str(manifest), "--check", str(manifest)]) == 0
    printed = capsys.readouterr().out.splitlines()
    fitted, checked = printed[1:4], printed[4:7]
    assert [line.split(": ")[1] for line in fitted] == [line.split(": ")[1] for line in checked]
    found = load_calibration(packed)
    assert set(found.weights) == {PLAIN, JOINT, JOINT_NGRAM}
    assert all(f" {found.lead_seconds:.2f} s before" in printed[line] for line in (0, 7))
    assert transcribe.main(call) == 0
    segments = json.loads(capsys.readouterr().out)["segments"]
    syllables = [syllable for segment in segments for syllable in segment["syllables"]]
    assert syllables and all(0.0 <= syllable["confidence"] <= 1.0 for syllable in syllables)
    assert transcribe.main([*call, "--minimum-confidence", "1"]) == 0
    assert [segment["hanzi"] for segment in json.loads(capsys.readouterr().out)["segments"]] == [""]
    (packed / "confidence.json").write_text('{"weights": {"plain": {}}}')
    for _ in range(2):  # changed, then damaged
        with pytest.raises(RunError, match=r"SHA-256|calibration of the confidences is damaged"):
            transcribe.main(call)
        (packed / "checksums").unlink(missing_ok=True)
