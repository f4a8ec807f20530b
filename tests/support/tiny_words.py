"""Writes clips of two words, tones of 0.2 s, by seven speakers, and quick settings to train on them."""

from pathlib import Path

import keras
import numpy as np

from model_keyword.labels import write_labels
from model_keyword.registry import build_keyword_model
from training.tasks.keyword import VARIANTS, KeywordConfig
from utils.audio.reading import SAMPLE_RATE
from utils.audio.samples import write_wav
from utils.backend.weights import save_weights
from utils.config import load_config, to_plain
from utils.run_folder.run import create_run

WORDS = {"low": 400.0, "high": 1500.0}
SPLITS = {"train": ("anna", "bert", "cora", "dora"), "dev": ("emil",), "test": ("fred", "gina")}
SMALL = (
    *("features.mel_bins=12", "features.coefficients=0", "features.window_ms=40", "data.clip_ms=200"),
    *("model.name=dnn", "model.frame_units=[8]", "model.frame_activations=[relu]"),
    *("model.units=[8]", "model.unit_activations=[relu]"),
    *("training.batch_clips=8", "training.evaluation_steps=5", "training.epochs=2", "data.workers=1"),
)


def write_tiny_words(folder: Path, words: dict[str, float] = WORDS, takes: int = 3) -> Path:
    """Write ``SPLIT/WORD/SPEAKER_nohash_TAKE.wav``; returns the folder."""
    rng = np.random.default_rng(0)
    time = np.arange(SAMPLE_RATE // 5) / SAMPLE_RATE
    for split, speakers in SPLITS.items():
        for word, hertz in words.items():
            for speaker in speakers:
                for take in range(takes):
                    tone = 0.3 * np.sin(2 * np.pi * hertz * rng.uniform(0.9, 1.1) * time)
                    noise = 0.01 * rng.standard_normal(len(time))
                    write_wav(folder / split / word / f"{speaker}_nohash_{take}.wav", tone + noise)
    return folder


def settings(words: Path, *more: str) -> list[str]:
    """Overrides for the small model on these words."""
    return [*SMALL, f"data.folder={words}", f"data.cache={words.parent / 'clips'}", *more]


def write_keyword_run(
    folder: Path, words: Path, labels: tuple[str, ...] = ("_silence_", "high", "low")
) -> Path:
    """A keyword run whose model has random weights, the same for the same labels."""
    config = load_config(KeywordConfig, None, ["task=keyword", *settings(words)], VARIANTS)
    keras.utils.set_random_seed(1)
    model = build_keyword_model(config.model, config.features, config.clip_samples, len(labels))
    run = create_run(folder, to_plain(config))
    write_labels(run.labels, labels)
    save_weights(model, run.best_weights)
    return folder
