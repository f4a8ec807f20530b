"""Tests of `whisper` against the published implementation: features, encoder, formats of weights, padding."""

import importlib.util
import os
import struct
from pathlib import Path

import keras
import numpy as np
import pytest

from model_speech.acoustic_model import load_acoustic_model
from model_speech.import_whisper import import_whisper, main
from model_speech.models.whisper import WhisperConfig, build_whisper
from model_speech.whisper_weights import read_whisper
from tests.support import tiny_whisper
from utils.errors import ConfigError, RunError
from utils.features.settings import FeatureConfig
from utils.features.speech import extract_features
from utils.features.whisper import log_mel

PUBLISHED = {  # weights of the encoder without its fixed positions, in millions
    "tiny": (WhisperConfig(blocks=4, width=384, heads=6), 7.6),
    "base": (WhisperConfig(), 19.8),
    "small": (WhisperConfig(blocks=12, width=768, heads=12), 87.0),
}
WITHOUT_TORCH = pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="needs PyTorch")


def sound() -> np.ndarray:
    """30 s whose loudness rises and falls."""
    rng = np.random.default_rng(11)
    swell = 0.02 + np.abs(np.sin(np.arange(480_000) / 9000))
    return (rng.normal(size=480_000) * 0.1 * swell).astype(np.float32)


@pytest.mark.parametrize(
    ("bins", "golden", "mean"),
    [
        (80, {(0, 0): -0.404711, (0, 79): -0.247843, (57, 3): 0.561721, (2999, 12): 0.163408}, 0.4775324),
        (128, {(0, 0): -0.480471, (57, 100): 0.678267, (2999, 127): 0.125232}, 0.4628063),
    ],
)
def test_features_are_those_of_the_published_implementation(bins, golden, mean):
    """Values of transformers 5.24, ``WhisperFeatureExtractor``."""
    features = extract_features(sound(), FeatureConfig(kind="whisper", bins=bins, normalise="none"))
    assert features.shape == (3000, bins)
    assert features.dtype == np.float32
    for place, value in golden.items():
        assert features[place] == pytest.approx(value, abs=2e-5)
    assert features.mean() == pytest.approx(mean, abs=1e-5)


def test_the_encoder_is_that_of_the_published_implementation(tmp_path):
    """Values of transformers 5.24, ``WhisperEncoder``, with the same weights and features."""
    tiny_whisper.write_hugging_face(tmp_path / "source")
    import_whisper(tmp_path / "source", tmp_path / "run")
    model = load_acoustic_model(tmp_path / "run").model
    encoder = keras.Model(model.inputs, model.get_layer("encoder_norm").output)
    features = log_mel(sound(), 80)[None]
    output = np.asarray(encoder({"features": features, "lengths": np.array([3000], np.int32)}))[0]
    golden = {(0, 0): -0.19151, (3, 17): 0.36759, (700, 63): 1.10044, (1499, 5): -0.93239}
    for place, value in golden.items():
        assert output[place] == pytest.approx(value, abs=2e-4)
    assert np.abs(output).mean() == pytest.approx(0.809146, abs=1e-4)


@pytest.mark.nightly
@pytest.mark.skipif(
    "WHISPER_FOLDER" not in os.environ, reason="WHISPER_FOLDER names no faster-whisper folder"
)
def test_real_weights_give_the_output_of_faster_whisper(tmp_path):
    """Needs the package faster-whisper; its folders have positions in float16, hence the tolerance."""
    faster_whisper, folder = pytest.importorskip("faster_whisper"), Path(os.environ["WHISPER_FOLDER"])
    published = faster_whisper.WhisperModel(str(folder), device="cpu", compute_type="float32")
    features = published.feature_extractor(sound(), padding=0)[:, :3000]
    import_whisper(folder, tmp_path / "run")
    model = load_acoustic_model(tmp_path / "run").model
    np.testing.assert_allclose(log_mel(sound(), len(features)), features.T, atol=2e-5)
    encoder = keras.Model(model.inputs, model.get_layer("encoder_norm").output)
    output = encoder({"features": features.T[None], "lengths": np.array([3000], np.int32)})
    assert np.abs(np.asarray(output) - np.asarray(published.encode(features))).mean() < 2e-3


@pytest.mark.parametrize("level_db", [-30, -20, 0])
def test_the_same_peak_makes_the_level_irrelevant(level_db):
    config = FeatureConfig(kind="whisper")
    samples = sound()[:48_000]
    quiet = extract_features(samples * np.float32(10 ** (level_db / 20)), config)
    difference = np.abs(quiet - extract_features(samples, config))
    assert np.percentile(difference, 99.9) < 2e-3  # the smallest energy is a limit: some values are above it


def test_a_click_does_not_lower_the_speech_and_silence_stays_low():
    config = FeatureConfig(kind="whisper")
    samples = 0.01 * sound()[:48_000]
    clicked = samples.copy()
    clicked[100:130] = 1.0
    speech = slice(20, None)
    np.testing.assert_allclose(
        extract_features(clicked, config)[speech], extract_features(samples, config)[speech], atol=0.05
    )
    silence = extract_features(np.zeros(16_000, np.float32), config)
    assert silence.max() < extract_features(samples, config).min() + 1.3


@pytest.mark.parametrize("samples", [1, 100, 201, 16_000])
def test_short_recordings_have_at_least_a_frame(samples):
    assert log_mel(sound()[:samples], 80).shape == (max(1, samples // 160), 80)


def test_fixed_settings_of_the_features_are_refused():
    with pytest.raises(ConfigError, match=r"features\.kind 'whisper' has fixed settings"):
        FeatureConfig(kind="whisper", hop_ms=8.5)


@pytest.mark.parametrize("size", PUBLISHED)
def test_parameter_counts_of_the_published_encoders(size):
    config, millions = PUBLISHED[size]
    model = build_whisper(config, 80, 10)
    head = {layer.name for layer in model.layers if layer.name.startswith(("head", "logits"))}
    weights = sum(layer.count_params() for layer in model.layers if layer.name not in head)
    assert weights / 1e6 == pytest.approx(millions, abs=0.6)


@pytest.mark.parametrize("parts", [1, 3])
def test_hugging_face_folders(tmp_path, parts):
    tiny_whisper.write_hugging_face(tmp_path / "source", parts)
    assert_is_the_tiny_one(tmp_path / "source")


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 0), ("float16", 1e-3), ("int8", 4e-3)])
def test_faster_whisper_folders(tmp_path, dtype, tolerance):
    tiny_whisper.write_faster_whisper(tmp_path / "source", dtype)
    assert_is_the_tiny_one(tmp_path / "source", tolerance)


@WITHOUT_TORCH
def test_files_of_openai(tmp_path):
    tiny_whisper.write_openai(tmp_path / "tiny.pt")
    assert_is_the_tiny_one(tmp_path / "tiny.pt")


def assert_is_the_tiny_one(source, tolerance: float = 0) -> None:
    encoder, state = read_whisper(source), tiny_whisper.state()
    assert (encoder.blocks, encoder.width, encoder.heads, encoder.mel_bins) == (2, 64, 1, 80)
    attention = encoder.layers["block_2_attention"]
    assert len(attention) == 7  # the keys have no bias
    for index, name in ((0, "query.weight"), (2, "key.weight"), (3, "value.weight"), (6, "out.bias")):
        np.testing.assert_allclose(attention[index], state[f"blocks.1.attn.{name}"].T, atol=tolerance)
    kernel, bias = encoder.layers["conv_2"]
    np.testing.assert_allclose(kernel, state["conv2.weight"].T, atol=tolerance)
    np.testing.assert_allclose(bias, state["conv2.bias"], atol=tolerance)
    np.testing.assert_allclose(encoder.layers["encoder_norm"][0], state["ln_post.weight"], atol=tolerance)


def test_what_cannot_be_imported_is_explained(tmp_path):
    def error(source) -> str:
        with pytest.raises(RunError) as caught:
            read_whisper(source)
        return str(caught.value)

    assert "no such file or folder" in error(tmp_path / "missing")
    (tmp_path / "empty").mkdir()
    assert "neither model.safetensors nor model.bin" in error(tmp_path / "empty")
    (tmp_path / "ggml-base.bin").write_bytes(b"lmgg")
    assert "a '.bin' file can't be imported" in error(tmp_path / "ggml-base.bin")
    (tmp_path / "cut").mkdir()
    tiny_whisper.write_faster_whisper(tmp_path / "whole")
    data = (tmp_path / "whole" / "model.bin").read_bytes()
    (tmp_path / "cut" / "model.bin").write_bytes(data[: len(data) // 2])
    assert "not a file of CTranslate2 (it ends within 'encoder/" in error(tmp_path / "cut")
    (tmp_path / "cut" / "model.bin").write_bytes(struct.pack("<I", 6) + b"\xff" * 20)
    assert "not a file of CTranslate2" in error(tmp_path / "cut")


def test_another_model_is_not_taken_for_whisper(tmp_path):
    from safetensors.numpy import save_file

    save_file({"encoder.layers.0.fc1.weight": np.zeros((4, 4), np.float32)}, tmp_path / "model.safetensors")
    with pytest.raises(RunError, match=r"not a Whisper model: 'conv1\.weight' is missing"):
        read_whisper(tmp_path)


def test_an_existing_run_is_not_overwritten(tmp_path):
    tiny_whisper.write_hugging_face(tmp_path / "source")
    assert main([str(tmp_path / "source"), str(tmp_path / "run")]) == 0
    with pytest.raises(RunError, match="run"):
        main([str(tmp_path / "source"), str(tmp_path / "run")])
