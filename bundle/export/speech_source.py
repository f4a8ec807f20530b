"""A speech run's folder → what its export begins with: the network, vocabulary, utterances.

A model that can stream is exported as its causal network, which takes clips of any length and streams. Every
other model is exported as it was trained: it takes whole utterances with their lengths.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np

from bundle.check.clips import evenly
from bundle.export.keyword_source import CALIBRATION_CLIPS, GOLDEN_CLIPS
from bundle.export.source import Clips, ExportSource, data_section
from data.manifest import Utterance, read_manifest
from model_speech.acoustic_model import load_acoustic_model
from model_speech.causal import CausalModel, causal_model, streaming_obstacles
from utils.audio.reading import read_audio
from utils.errors import UserError
from utils.features.speech import FeatureConfig, extract_features, feature_bins, settings_hash
from utils.run_folder.checksum_files import file_hash
from utils.run_folder.run import open_run
from utils.vocabulary import Vocabulary

LONGEST_SECONDS = 8.0
"""Longer utterances are left out: all clips of a bundle have one length."""
MOST_TESTS = 200
CALIBRATION_UTTERANCES = 100
DEVELOPMENT_UTTERANCES = 100
GOLDEN_UTTERANCES = 6
"""Whole utterances have thousands of rows of logits, so fewer of them are kept than of keyword clips."""
Gather = Callable[[Sequence[np.ndarray], Sequence[Utterance]], Clips]
"""Samples of each recording, and what is said there → what the model takes."""
_LOUDNESS = 0.05  # of the noise that stands in for golden clips where there are no recordings


def speech_source(
    run: str | Path, weights: str = "best", overrides: Sequence[str] = (), most_tests: int = MOST_TESTS
) -> ExportSource:
    """Read a speech run and its recordings; without them as
    :func:`bundle.export.keyword_source.keyword_source`.

    Args:
        run: the folder that the training wrote.
        weights: ``best``, ``last`` or a path.
        overrides: ``data.test=[…]`` and the like: where the manifests are now.
        most_tests: test utterances that accuracies are measured on, ``MOST_TESTS`` at most.

    Raises:
        RunError: a part of the run is missing or damaged.
        ConfigError: an override isn't about the data.
    """
    folder = open_run(run, "speech")
    acoustic = load_acoustic_model(folder.path, weights)
    features, vocabulary = acoustic.features, acoustic.vocabulary
    obstacles = tuple(streaming_obstacles(acoustic))
    if obstacles:
        model, row_stride, look_ahead = acoustic.model, acoustic.time_stride, 0
        gather: Gather = partial(_padded, features, vocabulary)
        noise, calibrating, golden = _noise_utterances(features), CALIBRATION_UTTERANCES, GOLDEN_UTTERANCES
    else:
        causal = causal_model(acoustic, folder)
        model, row_stride, look_ahead = causal.network, 0, causal.look_ahead
        gather = partial(_batch, causal)
        noise, calibrating, golden = _noise(features), CALIBRATION_CLIPS, GOLDEN_CLIPS
    data = data_section(folder, overrides)
    read = partial(_recordings, features, vocabulary)
    try:
        tests = gather(*read(data.get("test") or data.get("dev") or [], min(most_tests, MOST_TESTS)))
        calibration = gather(*read(data.get("train") or [], calibrating))
        dev = data.get("dev") if data.get("test") else []  # without a test list the dev list is the test
        development = gather(*read(dev or [], DEVELOPMENT_UTTERANCES))
    except (UserError, OSError) as error:
        print(f"note: no accuracy and no int8, the recordings can't be read: {error}", file=sys.stderr)
        tests = calibration = development = gather([], [])
    return ExportSource(
        kind="speech",
        model=model,
        features=asdict(features),
        features_hash=settings_hash(features),
        labels=tuple(vocabulary.tokens),
        decoding={"search": "greedy", "time_stride": acoustic.time_stride, "look_ahead": look_ahead},
        config_hash=file_hash(folder.config_file),
        frame_seconds=features.hop_seconds,
        calibration=calibration,
        tests=tests,
        golden=tests.spread(golden) if len(tests) else gather(noise, _nothing_said(len(noise))),
        development=development,
        row_stride=row_stride,
        obstacles=obstacles,
    )


def _recordings(
    features: FeatureConfig, vocabulary: Vocabulary, manifests: Sequence[str], most: int
) -> tuple[list[np.ndarray], list[Utterance]]:
    """Samples of at most so many utterances from all over the manifests, and the utterances."""
    utterances = [
        one for path in manifests for one in read_manifest(path)
        if one.seconds <= LONGEST_SECONDS and all(syllable in vocabulary for syllable in one.pinyin)
    ]  # fmt: skip
    chosen = [utterances[row] for row in evenly(len(utterances), most)]
    return [read_audio(one.audio, features.sample_rate) for one in chosen], chosen


def _batch(causal: CausalModel, sounds: Sequence[np.ndarray], utterances: Sequence[Utterance]) -> Clips:
    """Features of one length: zero frames, as in training, stand for what comes after an utterance."""
    config, stride = causal.features, causal.time_stride
    frames = int(LONGEST_SECONDS / config.hop_seconds) + causal.look_ahead
    frames += -frames % stride
    inputs = np.zeros((len(sounds), frames, feature_bins(config)), np.float32)
    for row, sound in enumerate(sounds):
        features = extract_features(sound, config)
        inputs[row, : len(features)] = features[: frames - causal.look_ahead]
    return Clips(inputs, _references(causal.vocabulary, utterances))


def _padded(
    config: FeatureConfig,
    vocabulary: Vocabulary,
    sounds: Sequence[np.ndarray],
    utterances: Sequence[Utterance],
) -> Clips:
    """Features of whole utterances, padded with zeros to the longest one, with their lengths."""
    features = [extract_features(sound, config) for sound in sounds]
    lengths = np.array([len(frames) for frames in features], np.int32)
    inputs = np.zeros((len(sounds), lengths.max(initial=1), feature_bins(config)), np.float32)
    for row, frames in zip(inputs, features, strict=True):
        row[: len(frames)] = frames
    return Clips(inputs, _references(vocabulary, utterances), lengths)


def _references(vocabulary: Vocabulary, utterances: Sequence[Utterance]) -> np.ndarray:
    """Classes of what is said, (N, most syllables) int32, ended by -1."""
    references = np.full(
        (len(utterances), max([len(one.pinyin) for one in utterances], default=1)), -1, np.int32
    )
    for row, one in zip(references, utterances, strict=True):
        row[: len(one.pinyin)] = [vocabulary.index(syllable) for syllable in one.pinyin]
    return references


def _noise(features: FeatureConfig) -> list[np.ndarray]:
    """Noise of the longest utterance's length, four times."""
    rng = np.random.default_rng(0)
    samples = int(LONGEST_SECONDS * features.sample_rate) - features.frame_samples
    return [rng.normal(0, _LOUDNESS, samples) for _ in range(4)]


def _noise_utterances(features: FeatureConfig) -> list[np.ndarray]:
    """Noise of unlike lengths, up to the longest utterance's."""
    rng = np.random.default_rng(0)
    samples = np.linspace(0.1, 1.0, GOLDEN_UTTERANCES) * LONGEST_SECONDS * features.sample_rate
    return [rng.normal(0, _LOUDNESS, int(count)) for count in samples]


def _nothing_said(count: int) -> list[Utterance]:
    return [Utterance(str(number), Path(), 0.0, "", (), "") for number in range(count)]
