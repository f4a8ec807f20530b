"""Checks that every acoustic model must pass, for the tests of each model."""

import csv
from pathlib import Path

import keras
import numpy as np

from data.manifest import read_manifest
from model_speech.acoustic_model import load_acoustic_model
from model_speech.ctc.loss import output_lengths
from recognition.recognizer import Recognizer
from training.run import train_from_config
from utils.run_folder.run import RunFolder


def padded_batch(bins: int, seed: int = 0):
    """Three utterances of unequal lengths in one batch, padded with NaN, so that use of it is noticed."""
    rng = np.random.default_rng(seed)
    lengths = np.array([45, 30, 13], np.int32)
    features = rng.normal(size=(3, 45, bins)).astype(np.float32)
    features[np.arange(45) >= lengths[:, None]] = np.nan
    return features, lengths


def assert_padding_has_no_influence(model: keras.Model, time_stride: int, bins: int):
    features, lengths = padded_batch(bins)
    together = model({"features": features, "lengths": lengths}).numpy()
    assert together.shape[1] == -(-45 // time_stride)
    for row, (length, frames) in enumerate(zip(lengths, output_lengths(lengths, time_stride), strict=True)):
        alone = model({"features": features[row : row + 1, :length], "lengths": lengths[row : row + 1]})
        assert alone.shape[1] == frames
        np.testing.assert_allclose(together[row, :frames], alone[0], atol=1e-4)


def assert_weights_round_trip(build, folder):
    """Two calls of ``build()`` give different weights; after saving and loading, the outputs are equal."""
    first, second = build(), build()
    bins = first.input["features"].shape[-1]
    batch = {"features": np.ones((2, 20, bins), np.float32), "lengths": np.array([20, 9], np.int32)}
    assert np.abs(first(batch) - second(batch)).max() > 1e-3
    first.save_weights(folder / "model.weights.h5")
    second.load_weights(folder / "model.weights.h5")
    np.testing.assert_array_equal(first(batch), second(batch))


def assert_survives_keras_files(model: keras.Model, folder):
    """Save and load the whole model as a ``.keras`` file, with custom layers by their registered names."""
    bins = model.input["features"].shape[-1]
    batch = {"features": np.ones((1, 20, bins), np.float32), "lengths": np.array([11], np.int32)}
    model.save(folder / "model.keras")
    loaded = keras.models.load_model(folder / "model.keras")
    np.testing.assert_allclose(loaded(batch), model(batch), atol=1e-6)


def assert_learns_through_a_recipe(name: str, settings: list[str], manifest: Path, folder: Path):
    """A few steps of ``train.py speech`` lower the loss, and recognition needs the run folder alone."""
    recipe = folder / "recipe.yaml"
    recipe.write_text(f"model: {{name: {name}}}\n", encoding="utf-8")
    data = [
        f"data.train=[{manifest}]",
        f"data.dev=[{manifest}]",
        f"data.cache={manifest.parent / 'features'}",
    ]
    size = ["features.bins=16", "data.workers=1", "data.batch_utterances=2", "training.epochs=3"]
    rate = ["optimiser.learning_rate=0.01", "optimiser.warmup_fraction=0", "optimiser.schedule=constant"]
    run = RunFolder(folder / "run")
    train_from_config("speech", recipe, [*data, *size, *rate, *settings], run.path)
    losses = [float(row["train_loss"]) for row in csv.DictReader(run.history.open(encoding="utf-8"))]
    assert losses[-1] < 0.8 * losses[0], losses
    recipe.unlink()
    acoustic = load_acoustic_model(run.path)
    assert acoustic.model.name == name
    recognised = list(
        Recognizer(acoustic).recognise(
            (utterance.id, utterance.audio) for utterance in read_manifest(manifest)
        )
    )
    assert len(recognised) == len(read_manifest(manifest))
