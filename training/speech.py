"""Training of an acoustic model: manifests → cached features, labels → the task that the loop trains."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np

from data.augment import AugmentConfig, SpecAugmentConfig
from data.batching import Batch, BatchSource
from data.feature_cache import FeatureCache, prepare_features
from data.manifest import Utterance, read_manifest
from model_speech.ctc import ctc_loss, frames_needed, output_lengths
from model_speech.decoding import greedy_decode
from model_speech.registry import MODELS
from training.loop import TrainingConfig, prepare_backend, train
from training.optimiser import OptimiserConfig
from training.step import compiled
from training.summary import summary_text
from utils.config import at_least
from utils.errors import ConfigError, TrainingError
from utils.features import FeatureConfig, feature_bins
from utils.files import write_text
from utils.metrics import count_errors
from utils.run import RunFolder
from utils.vocabulary import Vocabulary, acoustic_vocabulary

log = logging.getLogger("train")

SKIPPED_AT_MOST = 0.05


@dataclass(frozen=True)
class SpeechDataConfig:
    """Which manifests, and how they become batches.

    Attributes:
        train: manifests to learn from.
        repeats: how many times an epoch each of them is read; empty: once each.
        dev: manifests that pick the best epoch.
        test: manifests that ``test.py --split test`` decodes.
        cache: folder of the feature shards, shared by all runs.
        workers: processes that compute features.
        batch_frames: padded feature frames in a batch, at most.
        batch_utterances: utterances in a batch, at most.
        limit: only the first so many training utterances; 0 means all. The vocabulary is built from
            all of them in any case, so a trial's weights fit the full training.
    """

    train: tuple[str, ...] = ()
    repeats: tuple[int, ...] = ()
    dev: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    cache: str = "datasets/features"
    workers: int = 2
    batch_frames: int = 12_000
    batch_utterances: int = 32
    limit: int = 0

    def __post_init__(self):
        at_least(self, "data", workers=1, batch_frames=1, batch_utterances=1, limit=0)


@dataclass(frozen=True)
class SpeechConfig:
    """A recipe of an acoustic model; ``model`` holds the config class of the named model."""

    task: str = "speech"
    seed: int = 0
    features: FeatureConfig = field(default_factory=FeatureConfig)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    spec_augment: SpecAugmentConfig = field(default_factory=SpecAugmentConfig)
    data: SpeechDataConfig = field(default_factory=SpeechDataConfig)
    model: Any = None
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)


VARIANTS = {"model": {name: entry.config for name, entry in MODELS.items()}}


class SpeechTask:
    """CTC training over cached features; evaluation is greedy decoding of the dev set.

    Args:
        model: from ``model_speech``.
        vocabulary: the acoustic vocabulary, blank last.
        time_stride: feature frames a logit frame.
        train: source of training batches.
        dev: source of dev batches (not shuffled, not augmented).
    """

    metric = "dev_syllable_error_rate"

    def __init__(
        self,
        model: keras.Model,
        vocabulary: Vocabulary,
        time_stride: int,
        train: BatchSource,
        dev: BatchSource,
    ):
        self.model = model
        # Without this, Keras may compile every new shape of a dev batch with XLA on a GPU.
        model.compile(optimizer=None, jit_compile=False)
        self._blank = vocabulary.blank_index
        self._time_stride = time_stride
        self._train, self._dev = train, dev
        self._dev_ctc = compiled(self._ctc)

    def steps(self, epoch: int) -> int:
        """Number of training batches in an epoch."""
        return self._train.steps(epoch)

    def batches(self, epoch: int, first_step: int) -> Iterator[Batch]:
        """An epoch's training batches from ``first_step`` on."""
        return self._train.batches(epoch, first_step)

    def arrays(self, batch: Batch) -> dict[str, np.ndarray]:
        """Features (batch, frames, bins) float32, labels (batch, labels) int32 and both lengths."""
        return {
            "features": batch.features,
            "lengths": batch.feature_lengths,
            "labels": batch.labels,
            "label_lengths": batch.label_lengths,
        }

    def losses(self, arrays: dict[str, Any], training: bool) -> Any:
        """CTC loss of each utterance, in nats, (batch,) float32."""
        inputs = {"features": arrays["features"], "lengths": arrays["lengths"]}
        return self._ctc(arrays, self.model(inputs, training=training))

    def evaluate(self) -> dict[str, float]:
        """Mean CTC loss an utterance and tonal syllable error rate of the dev set."""
        total, utterances, errors, reference = 0.0, 0, 0, 0
        for batch in self._dev.batches(epoch=1, first_step=0):
            arrays = self.arrays(batch)
            inputs = {"features": arrays["features"], "lengths": arrays["lengths"]}
            logits = self.model.predict_on_batch(inputs)
            total += float(np.sum(self._dev_ctc(arrays, logits)))
            utterances += len(batch.ids)
            decoded = greedy_decode(
                logits, output_lengths(batch.feature_lengths, self._time_stride), self._blank
            )
            for hypothesis, labels, length in zip(decoded, batch.labels, batch.label_lengths, strict=True):
                counts = count_errors(labels[:length].tolist(), list(hypothesis.tokens))
                errors += counts.errors
                reference += counts.reference
        return {"dev_loss": total / utterances, self.metric: errors / max(reference, 1)}

    def _ctc(self, arrays: dict[str, Any], logits: Any) -> Any:
        lengths = output_lengths(arrays["lengths"], self._time_stride)
        return ctc_loss(arrays["labels"], logits, arrays["label_lengths"], lengths, self._blank)


def train_speech(config: SpeechConfig, run: RunFolder) -> dict[str, float]:
    """Train ``config`` into ``run`` (or go on where it was); returns the best epoch's figures.

    Raises:
        ConfigError, CorpusError, AudioError, VocabularyError, TrainingError: see the message.
    """
    prepare_backend(config.training, config.seed)
    train_utterances, dev_utterances = _read(config)
    vocabulary = _vocabulary(run, [*train_utterances, *dev_utterances])
    train_utterances = train_utterances[: config.data.limit or None]
    model = MODELS[config.model.name].build(config.model, feature_bins(config.features), len(vocabulary))
    write_text(run.path / "model_summary.txt", summary_text(model))
    task = _task(config, run, model, vocabulary, train_utterances, dev_utterances)
    log.info(
        "%s: %s parameters, %d training and %d dev utterances, %d tokens",
        config.model.name,
        f"{model.count_params():,}",
        len(train_utterances),
        len(dev_utterances),
        len(vocabulary),
    )
    return train(task, run, config.training, config.optimiser)


def _read(config: SpeechConfig) -> tuple[list[Utterance], list[Utterance]]:
    data = config.data
    if not data.train or not data.dev:
        raise ConfigError("data.train and data.dev each need a manifest", hint="see configs/speech")
    repeats = data.repeats or (1,) * len(data.train)
    if len(repeats) != len(data.train):
        what = f"data.repeats has {len(repeats)} entries for {len(data.train)} manifests"
        raise ConfigError(what, hint="one for each entry of data.train, or none at all")
    train_utterances = [
        u for path, times in zip(data.train, repeats, strict=True) for u in read_manifest(path) * times
    ]
    return train_utterances, [u for path in data.dev for u in read_manifest(path)]


def _vocabulary(run: RunFolder, utterances: Sequence[Utterance]) -> Vocabulary:
    path = run.vocabulary("acoustic.txt")
    if path.is_file():
        return Vocabulary.load(path)
    vocabulary = acoustic_vocabulary({syllable for utterance in utterances for syllable in utterance.pinyin})
    vocabulary.save(path)
    return vocabulary


def _task(
    config: SpeechConfig,
    run: RunFolder,
    model: keras.Model,
    vocabulary: Vocabulary,
    train_utterances: list[Utterance],
    dev_utterances: list[Utterance],
) -> SpeechTask:
    data, stride = config.data, config.model.time_stride
    train_cache = prepare_features(
        train_utterances, config.features, data.cache, config.augment, data.workers, config.seed
    )
    dev_cache = prepare_features(dev_utterances, config.features, data.cache, workers=data.workers)
    sources = []
    for cache, utterances, shuffle in (
        (train_cache, train_utterances, True),
        (dev_cache, dev_utterances, False),
    ):
        labels = [vocabulary.encode(u.pinyin, u.id, u.audio) for u in utterances]
        short = _too_short(cache, utterances, labels, stride)
        if shuffle:
            _report_skipped(short, utterances, run)
        elif short:
            _report_short_dev(short, utterances)
        kept = [i for i in range(len(utterances)) if not (shuffle and i in short)]
        sources.append(
            BatchSource(
                cache,
                [utterances[i] for i in kept],
                [labels[i] for i in kept],
                batch_frames=data.batch_frames,
                max_batch=data.batch_utterances,
                seed=config.seed,
                shuffle=shuffle,
                spec_augment=config.spec_augment if shuffle else None,
            )
        )
    return SpeechTask(model, vocabulary, stride, *sources)


def _too_short(
    cache: FeatureCache, utterances: list[Utterance], labels: list[np.ndarray], stride: int
) -> dict[int, str]:
    """Utterances whose shortest copy has too few frames for the labels: index → what is needed and there."""
    short = {}
    for index, (utterance, target) in enumerate(zip(utterances, labels, strict=True)):
        frames = min(cache.frames(utterance.id, copy) for copy in range(cache.copies + 1))
        available, needed = int(output_lengths(np.asarray(frames), stride)), frames_needed(target)
        if needed > available:
            short[index] = f"{needed} output frames needed, {available} there"
    return short


def _report_skipped(short: dict[int, str], utterances: list[Utterance], run: RunFolder) -> None:
    """List the training utterances that are too short; too many of them are an error."""
    if short:
        path = run.path / "skipped.tsv"
        lines = [f"{utterances[index].id}\t{why}\n" for index, why in short.items()]
        write_text(path, "".join(dict.fromkeys(lines)))
        log.warning("%d utterances are too short for their labels and skipped: %s", len(short), path)
    if len(short) > SKIPPED_AT_MOST * len(utterances):
        raise TrainingError(
            f"{len(short)} of {len(utterances)} utterances have more labels than output frames",
            where=run.path / "skipped.tsv",
            hint="check the transcripts, or choose a model with a smaller time stride",
        )


def _report_short_dev(short: dict[int, str], utterances: list[Utterance]) -> None:
    """Name the dev utterances that are too short: an error rate that left them out would flatter."""
    ids = [utterances[index].id for index in short]
    log.warning(
        "%d dev utterances are too short for their labels (dev_loss counts them as 0, "
        "the error rate in full): %s",
        len(ids),
        ", ".join(ids[:5]) + (" …" if len(ids) > 5 else ""),
    )
