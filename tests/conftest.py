"""Run folders with tiny models, for whatever needs a finished run; made once a session."""

from __future__ import annotations

from pathlib import Path

import keras
import pytest
from tiny_corpus import SYLLABLES, write_tiny_corpus

from model_language.ngram import NgramConfig, NgramModel
from model_language.registry import NGRAM_FILE
from model_language.symbols import build_symbols
from model_speech.compact import CompactConfig, build_compact
from utils.config import save_yaml, to_plain
from utils.features import FeatureConfig, feature_bins
from utils.run import RunFolder
from utils.vocabulary import acoustic_vocabulary


@pytest.fixture(scope="session")
def tiny_manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight recordings of chirps by four speakers, with transcripts."""
    return write_tiny_corpus(tmp_path_factory.mktemp("corpus"), utterances=8)


@pytest.fixture(scope="session")
def speech_run(tmp_path_factory: pytest.TempPathFactory, tiny_manifest: Path) -> Path:
    """A speech run whose model has random weights: its output means nothing, but is always the same."""
    run = RunFolder(tmp_path_factory.mktemp("runs") / "speech")
    features = FeatureConfig(bins=16)
    model_config = CompactConfig(front_filters=(2, 2), width=8, blocks=1)
    vocabulary = acoustic_vocabulary()
    keras.utils.set_random_seed(1)
    model = build_compact(model_config, feature_bins(features), len(vocabulary))
    lists = {split: [str(tiny_manifest)] for split in ("train", "dev", "test")}
    config = {
        "task": "speech",
        "features": to_plain(features),
        "data": lists,
        "model": to_plain(model_config),
    }
    save_yaml(run.config_file, config)
    vocabulary.save(run.vocabulary("acoustic.txt"))
    model.save_weights(run.best_weights)
    return run.path


@pytest.fixture(scope="session")
def language_run(tmp_path_factory: pytest.TempPathFactory, tiny_manifest: Path) -> Path:
    """A language run: bigrams of a few sentences."""
    run = RunFolder(tmp_path_factory.mktemp("runs") / "language")
    pairs = [(list(SYLLABLES), "".join(SYLLABLES.values())), (["wo3", "hao3"], "我好")]
    symbols, model_config = build_symbols(pairs), NgramConfig(order=2)
    lists = {"train": ["text.txt"], "dev": [], "test": [str(tiny_manifest)]}
    save_yaml(run.config_file, {"task": "language", "data": lists, "model": to_plain(model_config)})
    symbols.save(run.path)
    NgramModel.train(pairs, model_config, symbols).save(run.path / NGRAM_FILE)
    return run.path
