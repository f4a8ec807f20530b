"""Writes tiny run folders of every acoustic model and of the network converters, for exports."""

from pathlib import Path
from typing import Any

import keras

from model_language.registry import MODELS as CONVERTERS
from model_language.vocabulary.symbols import build_symbols
from model_speech.acoustic_model import AcousticModel
from model_speech.registry import MODELS
from tests.support.tiny_corpus import SYLLABLES
from tests.support.tiny_runs import save_speech_run
from utils.config import save_yaml, to_plain
from utils.features.settings import FeatureConfig, feature_bins
from utils.run_folder.run import RunFolder
from utils.vocabulary import Vocabulary, acoustic_vocabulary

ACOUSTIC: dict[str, dict[str, Any]] = {
    "compact": {"width": 16, "blocks": 2, "gate": 4},
    "dfcnn": {"filters": (4, 8, 8), "dense": 16},
    "gru_ctc": {"width": 8, "recurrent": 1, "dense": 1},
    "dfsmn": {"blocks": 2, "hidden": 16, "projection": 8, "past": 3, "future": 3},
    "conformer": {"blocks": 1, "width": 8, "heads": 2, "kernel": 7},
    "whisper": {"blocks": 1, "width": 8, "heads": 2, "head_width": 8},
}
CONVERTER: dict[str, dict[str, Any]] = {
    "transformer": {"width": 16, "blocks": 1, "heads": 2},
    "cbhg": {"embedding": 8, "width": 8, "bank": 3, "highway": 1},
}


def write_acoustic_run(folder: Path, name: str, manifest: Path, vocabulary: Vocabulary | None = None) -> Path:
    """A speech run of one model with random weights and filter bank features."""
    features, vocabulary = FeatureConfig(bins=16), vocabulary or acoustic_vocabulary()
    config = MODELS[name].config(**ACOUSTIC[name])
    keras.utils.set_random_seed(1)
    model = MODELS[name].build(config, feature_bins(features), len(vocabulary))
    return save_speech_run(
        folder, AcousticModel(model, features, vocabulary, config.time_stride), config, manifest
    )


def write_converter_run(folder: Path, name: str, manifest: Path) -> Path:
    """A language run of one network with random weights."""
    run = RunFolder(folder)
    symbols = build_symbols([(list(SYLLABLES), "".join(SYLLABLES.values()))])
    config = CONVERTERS[name].config(**CONVERTER[name])
    lists = {split: [str(manifest)] for split in ("train", "dev", "test")}
    save_yaml(run.config_file, {"task": "language", "data": lists, "model": to_plain(config)})
    symbols.save(run.path)
    keras.utils.set_random_seed(1)
    CONVERTERS[name].build(config, symbols, run).save_weights(run.best_weights)
    return folder
