"""Tests of the training of a head on the stored outputs of an encoder."""

import csv

import numpy as np
import pytest

from model_speech.acoustic_model import load_acoustic_model
from tests.support.tiny_corpus import write_tiny_corpus
from training.run import train_from_config
from utils.errors import ConfigError
from utils.run_folder.run import RunFolder

SIZE = ("model.width=16", "model.heads=2", "model.blocks=1", "model.head_width=12", "augment.copies=0")
SHORT = ("optimiser.learning_rate=0", "optimiser.weight_decay=0", "training.epochs=1", "data.workers=1")


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    """Trains a tiny Whisper on eight utterances, with rates of 0 after the training of the head."""
    manifest = write_tiny_corpus(tmp_path_factory.mktemp("corpus"), utterances=8)
    path = manifest.parent / "recipe.yaml"
    path.write_text(
        "model: {name: whisper}\nfeatures: {kind: whisper}\n"
        f"data: {{train: [{manifest}], dev: [{manifest}], cache: {manifest.parent / 'features'}}}\n",
        encoding="utf-8",
    )
    return path


def trained(recipe, run, *changes):
    train_from_config("speech", recipe, [*SIZE, *SHORT, *changes], run)
    history = csv.DictReader(RunFolder(run).history.open(encoding="utf-8"))
    layers = load_acoustic_model(run, "last").model.layers
    return float(next(history)["dev_loss"]), {layer.name: layer.get_weights() for layer in layers}


def test_only_the_head_learns(recipe, tmp_path):
    first_loss, before = trained(recipe, tmp_path / "as_built")
    head = ("head.after=frame_pairs", "head.epochs=60", "head.learning_rate=0.03")
    loss, after = trained(recipe, tmp_path / "head", *head)
    assert loss < 0.5 * first_loss
    for name, arrays in before.items():
        same = all(np.array_equal(*pair) for pair in zip(arrays, after[name], strict=True))
        assert same == (not arrays or name not in ("head", "head_norm", "logits")), name


@pytest.mark.parametrize("layer", ["logits", "frames"])
def test_a_head_is_behind_a_layer(recipe, tmp_path, layer):
    with pytest.raises(ConfigError, match=f"head.after is '{layer}'"):
        trained(recipe, tmp_path / "run", f"head.after={layer}")
