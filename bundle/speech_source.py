"""A speech run's folder → what its export begins with: the causal network, vocabulary, utterances.

Only models that go along with a stream are exported: of the others, a clip's answers depend on its length.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from bundle.clips import evenly
from bundle.keyword_source import CALIBRATION_CLIPS, GOLDEN_CLIPS
from bundle.source import Clips, ExportSource
from data.manifest import Utterance, read_manifest
from model_speech.causal import CausalModel, load_causal_model
from utils.audio import read_audio
from utils.checksum_files import file_hash
from utils.config import with_overrides
from utils.errors import ConfigError, UserError
from utils.features import extract_features, feature_bins, settings_hash
from utils.run import open_run

LONGEST_SECONDS = 8.0
"""Longer utterances are left out: all clips of a bundle have one length."""
MOST_TESTS = 200
_LOUDNESS = 0.05  # of the noise that stands in for golden clips where there are no recordings


def speech_source(
    run: str | Path, weights: str = "best", overrides: Sequence[str] = (), most_tests: int = MOST_TESTS
) -> ExportSource:
    """Read a speech run and its recordings; without them as :func:`bundle.keyword_source.keyword_source`.

    Args:
        run: the folder that the training wrote.
        weights: ``best``, ``last`` or a path.
        overrides: ``data.test=[…]`` and the like: where the manifests are now.
        most_tests: test utterances that accuracies are measured on, ``MOST_TESTS`` at most.

    Raises:
        RunError: a part of the run is missing or damaged.
        ConfigError: the model, or its features, need an utterance's end; or an override isn't about the data.
    """
    folder = open_run(run, "speech")
    causal = load_causal_model(folder.path, weights)
    data = _data(folder.config().get("data") or {}, overrides)
    try:
        tests = _clips(causal, data.get("test") or data.get("dev") or [], min(most_tests, MOST_TESTS))
        calibration = _clips(causal, data.get("train") or [], CALIBRATION_CLIPS)
    except (UserError, OSError) as error:
        print(f"note: no accuracy and no int8, the recordings can't be read: {error}", file=sys.stderr)
        tests = calibration = _batch(causal, [], [])
    golden = tests.spread(GOLDEN_CLIPS)
    return ExportSource(
        kind="speech",
        model=causal.network,
        features=asdict(causal.features),
        features_hash=settings_hash(causal.features),
        labels=tuple(causal.vocabulary.tokens),
        decoding={"search": "greedy", "look_ahead": causal.look_ahead},
        config_hash=file_hash(folder.config_file),
        frame_seconds=causal.features.hop_seconds,
        calibration=calibration,
        tests=tests,
        golden=golden if len(golden) else _noise(causal),
    )


def _data(values: dict, overrides: Sequence[str]) -> dict:
    for override in overrides:
        if not override.startswith("data."):
            hint = "an export may be given data.*: where the recordings are now"
            raise ConfigError(f"'{override}' can't be changed after the training", hint=hint)
    return with_overrides({"data": values}, overrides)["data"]


def _clips(causal: CausalModel, manifests: Sequence[str], most: int) -> Clips:
    utterances = [
        one for path in manifests for one in read_manifest(path)
        if one.seconds <= LONGEST_SECONDS and all(syllable in causal.vocabulary for syllable in one.pinyin)
    ]  # fmt: skip
    chosen = [utterances[row] for row in evenly(len(utterances), most)]
    sounds = [read_audio(one.audio, causal.features.sample_rate) for one in chosen]
    return _batch(causal, sounds, chosen)


def _batch(causal: CausalModel, sounds: Sequence[np.ndarray], utterances: Sequence[Utterance]) -> Clips:
    """Features of one length: zero frames, as in training, stand for what comes after an utterance."""
    config, stride = causal.features, causal.time_stride
    frames = int(LONGEST_SECONDS / config.hop_seconds) + causal.look_ahead
    frames += -frames % stride
    inputs = np.zeros((len(sounds), frames, feature_bins(config)), np.float32)
    references = np.full((len(sounds), max([len(one.pinyin) for one in utterances], default=1)), -1, np.int32)
    for row, (sound, one) in enumerate(zip(sounds, utterances, strict=True)):
        features = extract_features(sound, config)
        inputs[row, : len(features)] = features[: frames - causal.look_ahead]
        references[row, : len(one.pinyin)] = [causal.vocabulary.index(syllable) for syllable in one.pinyin]
    return Clips(inputs, references)


def _noise(causal: CausalModel) -> Clips:
    rng = np.random.default_rng(0)
    samples = int(LONGEST_SECONDS * causal.features.sample_rate) - causal.features.frame_samples
    sounds = [rng.normal(0, _LOUDNESS, samples) for _ in range(4)]
    nobody = [Utterance(str(number), Path(), 0.0, "", (), "") for number in range(len(sounds))]
    return _batch(causal, sounds, nobody)
