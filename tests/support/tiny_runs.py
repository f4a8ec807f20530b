"""Writes run folders with tiny models, for tests that need a finished run."""

from pathlib import Path
from typing import Any

import keras

from model_language.converters.ngram import NgramConfig, NgramModel
from model_language.vocabulary.symbols import build_symbols
from model_speech.acoustic_model import AcousticModel
from model_speech.models.compact import CompactConfig, build_compact
from tests.support.tiny_corpus import SYLLABLES
from utils.backend.weights import save_weights
from utils.config import to_plain
from utils.features.settings import FeatureConfig, feature_bins
from utils.run_folder.run import create_run
from utils.vocabulary import acoustic_vocabulary


def write_speech_run(folder: Path, manifest: Path) -> Path:
    """A speech run whose model has random weights: its output is meaningless but reproducible."""
    features, vocabulary = FeatureConfig(bins=16), acoustic_vocabulary()
    model_config = CompactConfig(width=8, blocks=1)
    keras.utils.set_random_seed(1)
    model = build_compact(model_config, feature_bins(features), len(vocabulary))
    acoustic = AcousticModel(model, features, vocabulary, model_config.time_stride)
    return save_speech_run(folder, acoustic, model_config, manifest)


def save_speech_run(
    folder: Path, acoustic: AcousticModel, model_config: Any, manifest: Path = Path("manifest.tsv")
) -> Path:
    """The run folder of an existing model."""
    config = {
        "task": "speech",
        "features": to_plain(acoustic.features),
        "data": {split: [str(manifest)] for split in ("train", "dev", "test")},
        "model": to_plain(model_config),
    }
    run = create_run(folder, config)
    acoustic.vocabulary.save(run.vocabulary("acoustic.txt"))
    save_weights(acoustic.model, run.best_weights)
    return folder


def write_language_run(folder: Path, manifest: Path) -> Path:
    """A language run: bigrams of a few sentences."""
    pairs = [(list(SYLLABLES), "".join(SYLLABLES.values())), (["wo3", "hao3"], "我好")]
    symbols, model_config = build_symbols(pairs), NgramConfig(order=2)
    lists = {"train": ["text.txt"], "dev": [], "test": [str(manifest)]}
    run = create_run(folder, {"task": "language", "data": lists, "model": to_plain(model_config)})
    symbols.save(run.path)
    NgramModel.train(pairs, model_config, symbols).save(run.path / "ngram.npz")
    return folder
