"""What every acoustic model must do: refuse impossible settings, ignore padding, be saved, be trained."""

import csv

import keras
import numpy as np
import pytest

from data.manifest import read_manifest
from model_speech.acoustic_model import load_acoustic_model
from model_speech.ctc.loss import output_lengths
from model_speech.models.compact import CompactConfig
from model_speech.models.compact_streaming import CompactStreamingConfig
from model_speech.models.conformer import ConformerConfig
from model_speech.models.dfcnn import DfcnnConfig
from model_speech.models.dfsmn import DfsmnConfig
from model_speech.models.gru_ctc import GruCtcConfig
from model_speech.models.whisper import WhisperConfig
from model_speech.registry import MODELS
from recognition.recognizer import Recognizer
from tests.support.acoustic_models import padded_batch
from training.run import train_from_config
from utils.errors import ConfigError
from utils.run_folder.run import RunFolder

SMALL = (
    (CompactConfig(front_filters=(4, 4), width=16, blocks=2, kernel=5, gate=8), 8),
    (CompactStreamingConfig(front_filters=(4, 4), width=16, blocks=2, kernel=5, look_ahead=16), 16),
    (ConformerConfig(blocks=1, width=8, heads=2, kernel=6), 7),
    (DfcnnConfig(filters=(4, 4, 8, 8), dense=16), 16),
    (
        DfsmnConfig(
            blocks=2, hidden=12, projection=8, past=3, future=2, past_stride=2, future_stride=1, top=1
        ),
        6,
    ),
    (GruCtcConfig(stack=2, width=8, dense=1, recurrent=2), 6),
    (WhisperConfig(blocks=2, width=16, heads=2, head_width=12), 80),
)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("compact", {"width": 0}, "width is 0, at least 1"),
        ("compact", {"blocks": -1}, "blocks is -1, at least 0"),
        ("compact", {"gate": -1}, "gate is -1, at least 0"),
        ("compact", {"front_filters": (16, 0)}, r"front_filters is \(16, 0\), at least 1"),
        ("compact", {"front_blocks": (1,)}, r"front_blocks has 1 numbers, model\.front_filters 2"),
        ("compact", {"dropout": 1.5}, r"dropout is 1\.5, at least 0 and below 1"),
        ("conformer", {"kernel": 0}, "kernel is 0, at least 1"),
        ("conformer", {"width": 10, "heads": 4}, r"width 10 is not a multiple of model\.heads 4"),
        ("dfcnn", {"dense": 0}, "dense is 0, at least 1"),
        ("dfcnn", {"pooled": 6}, "pooled is 6, at most 5, the number of cells"),
        ("dfsmn", {"past": -1}, "past is -1, at least 0"),
        ("dfsmn", {"future_stride": 0}, "future_stride is 0, at least 1"),
        ("gru_ctc", {"stack": 0}, "stack is 0, at least 1"),
        ("gru_ctc", {"recurrent": -1}, "recurrent is -1, at least 0"),
    ],
)
def test_an_impossible_setting_is_named(name, settings, message):
    with pytest.raises(ConfigError, match=rf"model\.{message}"):
        MODELS[name].config(**settings)


@pytest.mark.parametrize(("config", "bins"), SMALL, ids=lambda value: getattr(value, "name", ""))
def test_padding_has_no_influence_and_files_keep_the_model(config, bins, tmp_path):
    models = [MODELS[config.name].build(config, bins, 5) for _ in range(2)]
    assert_padding_has_no_influence(models[0], config.time_stride, bins)
    assert_is_saved(*models, tmp_path)


def assert_padding_has_no_influence(model: keras.Model, time_stride: int, bins: int) -> None:
    features, lengths = padded_batch(bins)
    together = model({"features": features, "lengths": lengths}).numpy()
    assert together.shape[1] == -(-45 // time_stride)
    for row, (length, frames) in enumerate(zip(lengths, output_lengths(lengths, time_stride), strict=True)):
        alone = model({"features": features[row : row + 1, :length], "lengths": lengths[row : row + 1]})
        assert alone.shape[1] == frames
        np.testing.assert_allclose(together[row, :frames], alone[0], atol=1e-4)


def assert_is_saved(first: keras.Model, second: keras.Model, folder) -> None:
    """As weights and as a ``.keras`` file, with custom layers by their registered names."""
    bins = first.input["features"].shape[-1]
    batch = {"features": np.ones((2, 20, bins), np.float32), "lengths": np.array([20, 9], np.int32)}
    assert np.abs(first(batch) - second(batch)).max() > 1e-3
    first.save_weights(folder / "model.weights.h5")
    second.load_weights(folder / "model.weights.h5")
    np.testing.assert_array_equal(first(batch), second(batch))
    first.save(folder / "model.keras")
    loaded = keras.models.load_model(folder / "model.keras")
    np.testing.assert_allclose(loaded(batch), first(batch), atol=1e-6)


@pytest.mark.parametrize(
    "name", ["compact", "compact_streaming", *(pytest.param("conformer", marks=pytest.mark.nightly),)]
)
def test_bfloat16_is_for_products_only(name):
    """All else, the logits and the weights included, is float32; the global policy stays."""
    sizes = {"heads": 2} if name == "conformer" else {}
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = MODELS[name].build(MODELS[name].config(width=8, blocks=2, **sizes), 6, 5)
        assert keras.config.dtype_policy().name == "mixed_bfloat16"
    finally:
        keras.config.set_dtype_policy("float32")
    products = {layer.name for layer in model.layers if layer.compute_dtype == "bfloat16"}
    if name != "conformer":
        expected = ["front_1_conv", "front_2_conv", "front", "block_1_mix", "block_2_mix", "logits"]
        assert products == set(expected)
    assert {weight.dtype for weight in model.weights} == {"float32"}
    logits = model({"features": np.ones((1, 16, 6), np.float32), "lengths": np.array([16], np.int32)})
    assert logits.dtype == "float32"
    assert products and np.isfinite(logits).all()


LAYER_RATES = "optimiser.layer_rates=[{layers: 'block_*', factor: 0.5, start: 0.1}]"


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        (
            "dfsmn",
            "model.blocks=2 model.hidden=32 model.projection=16 model.past=3 model.future=3 model.top=1",
        ),
        ("whisper", "features.kind=whisper model.blocks=1 model.width=16 model.heads=2 data.buckets=2"),
        pytest.param(
            *("conformer", "model.blocks=1 model.width=16 model.heads=2 model.kernel=6"),
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            *("gru_ctc", "model.stack=8 model.width=16 model.dense=1 model.recurrent=1"),
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_learns_through_a_recipe(name, settings, tiny_manifest, tmp_path):
    """A few steps of ``train.py speech`` lower the loss, and recognition needs the run folder alone."""
    recipe, run = tmp_path / "recipe.yaml", RunFolder(tmp_path / "run")
    recipe.write_text(f"model: {{name: {name}}}\n", encoding="utf-8")
    data = [f"data.{split}=[{tiny_manifest}]" for split in ("train", "dev")]
    data.append(f"data.cache={tiny_manifest.parent / 'features'}")
    size = ["features.bins=16", "data.workers=1", "data.batch_utterances=2", "training.epochs=3"]
    rate = ["optimiser.learning_rate=0.01", "optimiser.warmup_fraction=0", "optimiser.schedule=constant"]
    rate += [LAYER_RATES] * (name == "whisper")
    train_from_config("speech", recipe, [*data, *size, *rate, *settings.split()], run.path)
    losses = [float(row["train_loss"]) for row in csv.DictReader(run.history.open(encoding="utf-8"))]
    assert losses[-1] < 0.8 * losses[0], losses
    recipe.unlink()
    acoustic = load_acoustic_model(run.path)
    assert acoustic.model.name == name
    sources = [(utterance.id, utterance.audio) for utterance in read_manifest(tiny_manifest)]
    assert len(list(Recognizer(acoustic).recognise(sources))) == len(sources)
