"""Tests of training/tasks/adaptation.py: model of the initial run, frozen statistics, held-out sentences."""

import json
import shutil
from pathlib import Path

import pytest

from analysis.runs import read_run
from bundle.pack import pack
from data.manifest import read_manifest
from model_speech.acoustic_model import AcousticModel, load_acoustic_model
from model_speech.models.compact import CompactConfig, build_compact
from preflight.checks.runs import unknown_config
from tests.support.tiny_corpus import write_tiny_corpus
from tests.support.tiny_runs import save_speech_run
from training.run import train_from_config
from training.tasks.adaptation import hold_out
from utils.errors import ConfigError
from utils.features.settings import FeatureConfig, feature_bins
from utils.run_folder.run import RunFolder
from utils.vocabulary import acoustic_vocabulary

RECIPE = Path(__file__).parents[2] / "configs/speech/adapt.yaml"
FEATURES = FeatureConfig(frame_ms=50, window="hamming")
SEARCH_WEIGHTS = {"language_weight": 0.6, "joint_bonus": 4.0, "rescoring_weight": 0.2}
MODEL = CompactConfig(front_filters=(4, 4), width=16, blocks=2, gate=4)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a packed run of a small model with random weights, and a manifest."""
    folder = tmp_path_factory.mktemp("adaptation")
    manifest, vocabulary = write_tiny_corpus(folder / "corpus"), acoustic_vocabulary()
    model = build_compact(MODEL, feature_bins(FEATURES), len(vocabulary))
    acoustic = AcousticModel(model, FEATURES, vocabulary, MODEL.time_stride)
    whole = save_speech_run(folder / "whole", acoustic, MODEL, manifest)
    pack(whole, folder / "packed", search=SEARCH_WEIGHTS)
    shutil.rmtree(folder / "whole")
    return folder


def adapt(folder: Path, name: str, *overrides: str) -> RunFolder:
    settings = [
        f"initialise_from={folder / 'packed'}",
        f"data.train=[{folder / 'corpus/manifest.tsv'}]",
        f"data.cache={folder / 'cache'}",
        "data.workers=1",
        "training.epochs=1",
        'freeze=["*block_*","*_norm",logits]',  # the recipe's comment: for `compact`
        *overrides,
    ]
    train_from_config("speech", RECIPE, settings, folder / name)
    return RunFolder(folder / name)


@pytest.fixture(scope="module")
def unchanged(base: Path) -> RunFolder:
    """An adapted run with the weights of the packed one."""
    return adapt(base, "unchanged", "optimiser.learning_rate=0")


def test_a_packed_run_is_adapted_with_its_own_model_and_frozen_statistics(base: Path):
    run = adapt(base, "adapted", "optimiser.learning_rate=0.01")
    adapted, initial = load_acoustic_model(run.path, "last"), load_acoustic_model(base / "packed")
    assert adapted.features == initial.features and adapted.vocabulary == initial.vocabulary
    for layer in initial.model.layers:
        other = adapted.model.get_layer(layer.name)
        same = all((a == b).all() for a, b in zip(layer.get_weights(), other.get_weights(), strict=True))
        learns = layer.name == "front" or layer.name.endswith("_conv")
        assert same != learns, layer.name


def test_an_adaptation_that_does_not_help_keeps_the_initial_weights_and_reports_it(
    base: Path, unchanged: RunFolder
):
    assert json.loads(unchanged.metrics.read_text(encoding="utf-8"))["best"]["epoch"] == 0
    assert "the initial weights are kept" in unchanged.log.read_text(encoding="utf-8")
    kept, initial = (load_acoustic_model(path).model for path in (unchanged.path, base / "packed"))
    for a, b in zip(kept.get_weights(), initial.get_weights(), strict=True):
        assert a.shape == b.shape and (a == b).all()


def test_an_adapted_run_keeps_the_search_weights_of_its_initial_run(unchanged: RunFolder, tmp_path: Path):
    assert unchanged.config()["search"] == SEARCH_WEIGHTS
    assert not list(unknown_config(unchanged))
    assert not {name for name in read_run(unchanged.path).hyper if name.startswith("search")}
    pack(unchanged.path, tmp_path / "packed")
    assert RunFolder(tmp_path / "packed").config()["search"] == SEARCH_WEIGHTS
    pack(unchanged.path, tmp_path / "packed", search={"joint_bonus": 3.0})
    assert RunFolder(tmp_path / "packed").config()["search"] == {**SEARCH_WEIGHTS, "joint_bonus": 3.0}


def test_settings_that_contradict_the_initial_model_are_refused(base: Path, capsys):
    with pytest.raises(ConfigError, match=r"features\.\* are set"):
        adapt(base, "features", "features.frame_ms=32")
    with pytest.raises(ConfigError, match="without initialise_from"):
        adapt(base, "nothing", "initialise_from=''")
    with pytest.raises(
        ConfigError, match=r"no layer is called 'conv_\*', set freeze=.* there are: front_1_conv, "
    ):
        adapt(base, "frozen", "freeze=[conv_*]")
    assert "front_1_conv" not in "".join(capsys.readouterr())  # the names are in the hint only


def test_held_out_sentences_are_in_no_training_utterance(tmp_path: Path):
    utterances = read_manifest(write_tiny_corpus(tmp_path, utterances=40, longest=3))
    (train,), dev = hold_out([utterances], 3)
    sentences = list(dict.fromkeys(utterance.pinyin for utterance in utterances))
    assert {utterance.pinyin for utterance in dev} == set(sentences[2::3])
    assert not {u.pinyin for u in dev} & {u.pinyin for u in train}
    assert sorted(u.id for u in [*train, *dev]) == sorted(u.id for u in utterances)
    with pytest.raises(ConfigError, match="none is held out"):
        hold_out([utterances], 50)
    both, again = hold_out([utterances, utterances[::-1]], 3)
    assert again == dev and both == [train, train[::-1]]
