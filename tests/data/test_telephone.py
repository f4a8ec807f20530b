"""Tests of telephone speech at 8 kHz: preparation, doctor.py, training, mel filters that are not empty."""

import json
import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import yaml

import doctor
from data.corpora import manifest_lists
from data.keywords.clips import KeywordClip
from data.manifest import Utterance, read_manifest, write_manifest
from data.synthesis.corpus import CorpusSettings, PlannedUtterance, SplitPool, corpus_card, make_utterance
from data.synthesis.reading import make_sentence
from data.synthesis.voices import Voice
from preflight.recipes import check_before_training, read_recipe
from tests.support.tiny_corpus import SYLLABLES
from training.tasks.keyword import _warn_of_low_rates
from utils.audio.properties import audio_seconds, seconds_and_rate
from utils.errors import CorpusError
from utils.features.settings import FeatureConfig, empty_filters, feature_bins
from utils.features.spectra import mel_filters as speech_filters
from utils.features.speech import extract_features

TELEPHONE = 8_000
CONFIGS = Path(__file__).parents[2] / "configs"
AT_TELEPHONE_RATE = f"features.sample_rate={TELEPHONE}"


def write_lists(folder: Path, rates: dict[str, list[int]]) -> Path:
    """A list for each split, with a recording of noise a rate: ``SPLIT/N.wav``, 1 s, two syllables."""
    rng = np.random.default_rng(0)
    for split, each in rates.items():
        (folder / split).mkdir(parents=True)
        rows = []
        for number, rate in enumerate(each):
            audio = folder / split / f"{number}.wav"
            # Loud, then soft: nothing that the other checks would report.
            soundfile.write(audio, 0.1 * rng.normal(size=rate) * np.linspace(1, 0.1, rate), rate)
            syllables = tuple(rng.choice(list(SYLLABLES), 6))
            hanzi = "".join(SYLLABLES[syllable] for syllable in syllables)
            rows.append(Utterance(f"{split}{number}", audio, 1.0, f"{split}{number}", syllables, hanzi))
        write_manifest(folder / f"{split}.tsv", rows)
    return folder


@pytest.fixture
def telephone(tmp_path: Path) -> Path:
    """Three lists of 8 kHz recordings."""
    return write_lists(tmp_path / "telephone", dict.fromkeys(("train", "dev", "test"), [TELEPHONE] * 4))


@pytest.mark.parametrize("frame_ms", [20, 25, 32, 50, 64])
def test_the_usual_filter_bank_has_no_empty_filter_at_8_khz(frame_ms):
    config = FeatureConfig(sample_rate=TELEPHONE, frame_ms=frame_ms)
    bank = speech_filters(config.base_bins, config.fft_size, TELEPHONE).toarray()
    assert bank.any(axis=0).all()
    noise = np.random.default_rng(0).normal(size=TELEPHONE)
    features = extract_features(noise.astype(np.float32) / 10, replace(config, normalise="none"))
    assert features.shape[1] == feature_bins(config) and features.std(axis=0).min() > 0.05


# An adaptation uses the features of the adapted model; those of Whisper have a fixed rate.
SPEECH_RECIPES = [
    path
    for path in sorted(CONFIGS.glob("speech/*.yaml"))
    if path.stem != "adapt" and not path.stem.startswith("whisper")
]


@pytest.mark.parametrize("recipe", SPEECH_RECIPES, ids=lambda path: path.stem)
def test_speech_recipes_need_no_option_but_the_rate(recipe):
    features = read_recipe(recipe, [AT_TELEPHONE_RATE]).features
    assert features.kind != "filter_bank" or not empty_filters(
        features.base_bins, features.fft_size, TELEPHONE
    )


def test_prepare_names_the_options_for_telephone_speech(telephone, tmp_path):
    with pytest.raises(CorpusError, match=r"--sample-rate 8000.*features\.sample_rate=8000"):
        manifest_lists.main(["prepare", str(telephone), "--output", str(tmp_path / "out")])


def test_prepare_takes_telephone_speech(telephone, tmp_path, capsys):
    output = tmp_path / "out"
    options = ["--output", str(output), "--sample-rate", "8000"]
    assert manifest_lists.main(["prepare", str(telephone), *options]) == 0
    assert len(read_manifest(output / "train.tsv")) == 4
    summary = json.loads((output / "summary.json").read_text())
    assert summary["sample_rates"] == {"8000": 12} and not summary["rejected"]
    assert "train with features.sample_rate=8000" in " ".join(capsys.readouterr().out.split())


def doctors_view(capsys, *arguments: str) -> dict[str, str]:
    """Advice by check."""
    doctor.main([*arguments, "--json", "--workers", "1"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    return {finding["check"]: finding["advice"] for finding in findings}


def test_doctor_recommends_the_sample_rate(telephone, tmp_path, capsys):
    recipe = tmp_path / "recipe.yaml"
    data = {split: [str(telephone / f"{split}.tsv")] for split in ("train", "dev", "test")}
    values = {"data": {**data, "cache": str(tmp_path / "cache")}, "model": {"name": "compact"}}
    recipe.write_text(yaml.safe_dump(values))
    assert "features.sample_rate=8000" in doctors_view(capsys, str(telephone))["low-rate"]
    assert "features.sample_rate=8000" in doctors_view(capsys, "--config", str(recipe))["low-rate"]
    found = doctors_view(capsys, "--config", str(recipe), AT_TELEPHONE_RATE)
    assert not {"low-rate", "unlike-rate", "empty-filter"} & found.keys()
    found = doctors_view(capsys, "--config", str(recipe), AT_TELEPHONE_RATE, "features.bins=80")
    assert "features.frame_ms" in found["empty-filter"]


def test_training_names_upsampled_speech(telephone, tmp_path, caplog):
    lists = [f"data.{split}=[{telephone / split}.tsv]" for split in ("train", "dev", "test")]
    recipe = [*lists, f"data.cache={tmp_path}"]
    base = CONFIGS / "demo" / "speech.yaml"
    with caplog.at_level(logging.WARNING, "train"):
        check_before_training(read_recipe(base, [*recipe, AT_TELEPHONE_RATE]))
        assert "low-rate" not in caplog.text
        check_before_training(read_recipe(base, recipe))
    assert "features.sample_rate=8000" in caplog.text


def test_keyword_training_names_upsampled_clips(telephone, caplog):
    clips = [KeywordClip(path.stem, path, "word") for path in sorted(telephone.rglob("*.wav"))]
    with caplog.at_level(logging.WARNING, "train"):
        _warn_of_low_rates(clips, TELEPHONE)
        assert not caplog.text
        _warn_of_low_rates(clips, 16_000)
    assert "12 of 12 checked recordings" in caplog.text and "features.sample_rate=8000" in caplog.text


def test_synthetic_speech_of_telephone_rate(tmp_path):
    class Noise:
        def synthesise(self, speech):
            return (3000 * np.random.default_rng(0).standard_normal(22050)).astype(np.int16)

    sentence = make_sentence(["一", "二", "三"])
    pools = {"train": SplitPool((Voice("S001", "f1"),), (sentence,))}
    seconds = []
    for rate in (16_000, TELEPHONE):
        root = tmp_path / str(rate)
        for part in ("data", "train"):
            (root / part).mkdir(parents=True)
        planned = PlannedUtterance("S001_0000", "train", sentence, Voice("S001", "f1"), (0,))
        assert make_utterance(planned, Noise(), root, pools, rate) is None
        assert seconds_and_rate(root / "data" / "S001_0000.wav")[1] == rate
        seconds.append(audio_seconds(root / "data" / "S001_0000.wav"))
    assert seconds[0] == pytest.approx(seconds[1], abs=1e-3)
    usual, telephone = (corpus_card(tmp_path, CorpusSettings(sample_rate=r)) for r in (16_000, TELEPHONE))
    assert usual.parts != telephone.parts
