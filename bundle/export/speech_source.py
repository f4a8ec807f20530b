"""Reads a speech run folder for an export: its network, vocabulary, and utterances to check it.

A model that can stream is exported as its causal network, for clips of any length and for streams; on request
with the layers in front that compute its features from samples. Any other model is exported as it was
trained, for whole utterances with their lengths.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import keras
import numpy as np

from bundle.check.scoring import evenly
from bundle.export.keyword_source import CALIBRATION_CLIPS
from bundle.export.source import Clips, ExportSource, read_splits, usable_items
from data.corpora.tools.lists import read_utterances
from data.manifest import Utterance
from model_speech.acoustic_model import AcousticModel, load_acoustic_model
from model_speech.causal import STREAMING_HINT, CausalModel, causal_model, streaming_obstacles
from model_speech.layers.front_end import front_end
from utils.arrays import pad_rows
from utils.audio.padding import with_pauses
from utils.audio.reading import read_audio
from utils.errors import require
from utils.features.settings import FeatureConfig, feature_bins, settings_hash
from utils.features.speech import extract_features
from utils.mandarin.output_units import tokens_of
from utils.run_folder.checksum_files import file_hash
from utils.run_folder.run import open_run
from utils.vocabulary import Vocabulary

MAX_SECONDS = 8.0
"""Longer utterances are not used: clips for a streaming network are padded to one length."""
MAX_TESTS = 200  # utterances for the accuracy
CALIBRATION_UTTERANCES = 100  # of the training split, for int8
DEVELOPMENT_UTTERANCES = 100  # of the dev split, to choose the layers that int8 leaves in float
GOLDEN_UTTERANCES, GOLDEN_STREAMS = 6, 2
"""Fewer than keyword clips, because a bundle keeps the many rows of logits of each. Streams are compared in
every call, some hundred an utterance, with and without resets."""
Collect = Callable[[Sequence[np.ndarray], Sequence[Utterance]], Clips]
"""Function: samples and utterances → inputs and references."""
_LOUDNESS = 0.05  # of the noise that replaces golden clips if there are no recordings


def speech_source(
    run: str | Path,
    weights: str = "best",
    overrides: Sequence[str] = (),
    max_tests: int = MAX_TESTS,
    samples: bool = False,
) -> ExportSource:
    """Read a speech run and its recordings. Without recordings the golden clips are noise.

    Args:
        run: run folder.
        weights: ``best``, ``last`` or a path.
        overrides: such as ``data.test=[…]``, for recordings that were moved.
        max_tests: maximum number of test utterances.
        samples: whether the exported model takes samples and computes the features itself.

    Raises:
        RunError: a file of the run is missing or damaged.
        ConfigError: an override concerns another section; or the model needs whole utterances, and
            ``samples`` are requested.
    """
    folder = open_run(run, "speech")
    acoustic = load_acoustic_model(folder.path, weights)
    features, vocabulary = acoustic.features, acoustic.vocabulary
    obstacles = tuple(streaming_obstacles(acoustic))
    longest = MAX_SECONDS * features.sample_rate  # samples
    require(
        not (obstacles and samples),
        "a model of whole utterances can't take samples: its features need the whole utterance",
        hint=f"leave out --input samples, or {STREAMING_HINT}",
        where=folder.path,
    )
    if obstacles:
        model, row_stride, look_ahead = acoustic.model, acoustic.time_stride, 0
        collect: Collect = partial(_padded, acoustic)
        noise_lengths = np.linspace(0.1, 1.0, GOLDEN_UTTERANCES) * longest
        calibration_count, golden_count = CALIBRATION_UTTERANCES, GOLDEN_UTTERANCES
    else:
        causal = causal_model(acoustic, folder)
        model, row_stride, look_ahead = causal.network, 0, causal.look_ahead
        collect = partial(_batch, causal)
        if samples:
            inputs = keras.Input((_sample_count(causal),), name="samples")
            model = keras.Model(inputs, model(front_end(inputs, features)), name=model.name)
            collect = partial(_sound_batch, causal)
        noise_lengths = [longest - features.frame_samples] * GOLDEN_STREAMS
        calibration_count, golden_count = CALIBRATION_CLIPS, GOLDEN_STREAMS
    data = folder.data_section(overrides)
    splits = read_splits(
        lambda: {
            split: _utterances(split, data.get(split) or [], vocabulary) for split in ("test", "dev", "train")
        },
        lambda utterances, count: collect(*_read(utterances, count, features)),
        {"test": min(max_tests, MAX_TESTS), "dev": DEVELOPMENT_UTTERANCES, "train": calibration_count},
        empty=collect([], []),
    )
    return ExportSource(
        kind="speech",
        model=model,
        features=asdict(features),
        features_hash=settings_hash(features),
        labels=tuple(vocabulary.tokens),
        decoding={"search": "greedy", "time_stride": acoustic.time_stride, "look_ahead": look_ahead},
        config_hash=file_hash(folder.config_file),
        frame_seconds=features.hop_seconds,
        **splits,
        golden=splits["tests"].spread(golden_count) or collect(*_noise(noise_lengths)),
        row_stride=row_stride,
        obstacles=obstacles,
        blank=vocabulary.blank_index,
    )


def _utterances(split: str, manifests: Sequence[str], vocabulary: Vocabulary) -> list[Utterance]:
    """The utterances of a split that are short enough and have only tokens of the vocabulary."""
    read = [utterance for path in manifests for utterance in read_utterances(path)]
    long = f"utterances longer than {MAX_SECONDS:g} s"
    short = usable_items(split, read, lambda utterance: utterance.seconds <= MAX_SECONDS, long)

    def is_known(utterance: Utterance) -> bool:
        return all(token in vocabulary for token in _tokens(vocabulary, utterance))

    return usable_items(split, short, is_known, "utterances with tokens that the vocabulary lacks")


def _tokens(vocabulary: Vocabulary, utterance: Utterance) -> tuple[str, ...]:
    return tokens_of(vocabulary.units, utterance.pinyin, utterance.hanzi)


def _read(
    utterances: Sequence[Utterance], count: int, features: FeatureConfig
) -> tuple[list[np.ndarray], list[Utterance]]:
    """Samples of at most ``count`` utterances, evenly spaced, and the utterances."""
    chosen = [utterances[row] for row in evenly(len(utterances), count)]
    return [read_audio(utterance.audio, features.sample_rate) for utterance in chosen], chosen


def _frame_count(causal: CausalModel) -> int:
    """Feature frames of a clip with the look-ahead, a multiple of the time stride."""
    frames = int(MAX_SECONDS / causal.features.hop_seconds) + causal.look_ahead
    return frames + -frames % causal.time_stride


def _sample_count(causal: CausalModel) -> int:
    """Samples of the frames of a clip."""
    return (_frame_count(causal) - 1) * causal.features.hop_samples + causal.features.frame_samples


def _sound_batch(causal: CausalModel, sounds: Sequence[np.ndarray], utterances: Sequence[Utterance]) -> Clips:
    """Samples of one length; silence follows the utterance."""
    samples = _sample_count(causal)
    inputs = pad_rows([sound[:samples] for sound in sounds], samples, dtype=np.float32)
    return Clips(inputs, _references(causal.vocabulary, utterances))


def _batch(causal: CausalModel, sounds: Sequence[np.ndarray], utterances: Sequence[Utterance]) -> Clips:
    """Features of one length, padded with zero frames, as in training."""
    config, frames = causal.features, _frame_count(causal)
    features = [extract_features(sound, config)[: frames - causal.look_ahead] for sound in sounds]
    inputs = pad_rows(features, frames, dtype=np.float32, inner=(feature_bins(config),))
    return Clips(inputs, _references(causal.vocabulary, utterances))


def _padded(acoustic: AcousticModel, sounds: Sequence[np.ndarray], utterances: Sequence[Utterance]) -> Clips:
    """Features of whole utterances, padded with zeros to the longest one, with their lengths.

    Silence is added to the sound where the recogniser adds it.
    """
    config = acoustic.features
    output_frame = round(acoustic.frame_seconds * config.sample_rate)  # samples
    padded = [with_pauses(sound, config.sample_rate, output_frame)[0] for sound in sounds]
    features = [extract_features(sound, config) for sound in padded]
    lengths = np.array([len(frames) for frames in features], np.int32)
    inputs = pad_rows(features, dtype=np.float32, inner=(feature_bins(config),))
    return Clips(inputs, _references(acoustic.vocabulary, utterances), lengths)


def _references(vocabulary: Vocabulary, utterances: Sequence[Utterance]) -> np.ndarray:
    """Classes of the tokens, (N, longest) int32, padded with -1."""
    return pad_rows([vocabulary.encode(_tokens(vocabulary, each)) for each in utterances], fill=-1)


def _noise(sample_counts: Iterable[float]) -> tuple[list[np.ndarray], list[Utterance]]:
    """Clips of noise of these lengths, and their empty transcripts."""
    rng = np.random.default_rng(0)
    sounds = [rng.normal(0, _LOUDNESS, int(count)) for count in sample_counts]
    return sounds, [Utterance(str(number), Path(), 0.0, "", (), "") for number in range(len(sounds))]
