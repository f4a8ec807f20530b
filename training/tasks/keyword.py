"""Trains a keyword model: the recipe, the task (cross-entropy of clips), and the files of its run folder."""

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import keras
import numpy as np
from keras import ops

from data.features.spec_augment import SpecAugmentConfig
from data.keywords.augment import KeywordAugmentConfig, load_noises
from data.keywords.clip_cache import ClipStore, load_clips
from data.keywords.clips import (
    DEV_HINT,
    KeywordClip,
    KeywordDataConfig,
    labels_of,
    noise_recordings,
    read_keyword_clips,
)
from model_keyword.labels import describe_difference, read_labels, write_labels
from model_keyword.layers.time_layers import OUTPUT_LAYER
from model_keyword.loading import load_keyword_model, logits_of, samples_of
from model_keyword.registry import MODELS, build_keyword_model
from training.distributed.distribution import SINGLE_PROCESS, Distribution
from training.initialise import TokenLayer
from training.loop import TrainingConfig, prepare_backend, train
from training.tasks.keyword_batches import KeywordBatch, KeywordBatches, features_of
from training.tasks.recipe import Recipe, SourceModel, changed_data, prepare_model
from utils.audio.properties import sample_rates_of
from utils.backend.prediction import prepare_prediction
from utils.config import ConfigClasses, flatten, to_plain
from utils.errors import CorpusError, RunError, require
from utils.features.keyword import (
    KeywordFeatureConfig,
    feature_frames,
    feature_values,
)
from utils.files import write_json, write_text
from utils.limits import Count, Fraction, Size
from utils.run_folder.run import RunFolder, config_differences, describe_differences
from utils.vocabulary import Vocabulary

log = logging.getLogger("train")

# Clips are short: the masks for utterances would cover most of a word.
MASKS = SpecAugmentConfig(frequency_width=5, time_width=10, time_width_ratio=0.2)


@dataclass(frozen=True)
class KeywordTrainingConfig(TrainingConfig):
    """Duration, precision and batch size; the other fields are those of all tasks.

    Attributes:
        epochs: number of evaluations; an "epoch" in history and log is the time between two evaluations.
        evaluation_steps: steps between two evaluations.
        kept_weights: see :class:`training.loop.TrainingConfig`.
        batch_clips: clips in a batch.
        label_smoothing: fraction of a clip's target that is spread over all labels (Szegedy et al. 2016,
            arXiv:1512.00567, section 7).
    """

    evaluation_steps: Count = 400
    kept_weights: Size = 5
    batch_clips: Count = 100
    label_smoothing: Fraction = 0.0


@dataclass(frozen=True)
class KeywordConfig(Recipe):
    """A recipe of a keyword model; ``initialise_from`` takes the weights of the output layer by label.

    Attributes:
        spec_augment: masks over the features of training clips; not used for the kind ``raw``.
    """

    task: str = "keyword"
    features: KeywordFeatureConfig = field(default_factory=KeywordFeatureConfig)
    data: KeywordDataConfig = field(default_factory=KeywordDataConfig)
    augment: KeywordAugmentConfig = field(default_factory=KeywordAugmentConfig)
    spec_augment: SpecAugmentConfig = MASKS
    training: KeywordTrainingConfig = field(default_factory=KeywordTrainingConfig)

    def __post_init__(self):
        super().__post_init__()
        steps = sum(stage.steps for stage in self.optimiser.stages)
        needed = -(-steps // self.training.evaluation_steps)
        require(
            not steps or needed == self.training.epochs,
            f"optimiser.stages have {steps} steps, training.epochs={self.training.epochs} evaluations "
            f"after {self.training.evaluation_steps} steps each",
            hint=f"training.epochs={needed}",
        )

    @property
    def total_steps(self) -> int:
        """Number of steps of the training: the sum of the stages, if there are any."""
        stages = sum(stage.steps for stage in self.optimiser.stages)
        return stages or self.training.epochs * self.training.evaluation_steps

    @property
    def clip_samples(self) -> int:
        """Length of a clip in samples."""
        return samples_of(self.data.clip_ms, self.features.sample_rate)

    @property
    def context_samples(self) -> int:
        """Length of the sound before a clip that is part of the input, in samples."""
        return samples_of(self.data.context_ms, self.features.sample_rate)


VARIANTS = {"model": ConfigClasses(MODELS)}


class KeywordTask:
    """Minimises the cross-entropy of each clip's label; evaluates the error rate of the dev clips.

    Args:
        model: a network of ``model_keyword``.
        config: recipe with features, steps and label smoothing.
        batches: batches of the training clips.
        dev: inputs of the dev clips.
        dev_targets: (clips,) int32, indices of their labels.
    """

    metric = "dev_error_rate"
    accepts_padding = False  # the normalisation counts every clip

    def __init__(
        self,
        model: keras.Model,
        config: KeywordConfig,
        batches: KeywordBatches,
        dev: np.ndarray,
        dev_targets: np.ndarray,
    ):
        self.model = model
        prepare_prediction(model)
        self._config, self._batches = config, batches
        self._dev, self._dev_targets = dev, dev_targets

    def steps(self, epoch: int) -> int:
        """Number of steps before the next evaluation; there may be fewer before the last."""
        between = self._config.training.evaluation_steps
        return min(between, self._config.total_steps - (epoch - 1) * between)

    def batches(self, epoch: int, first_step: int) -> Iterator[KeywordBatch]:
        """The batches before the next evaluation, from ``first_step`` on."""
        before = (epoch - 1) * self._config.training.evaluation_steps
        return self._batches.between(before + first_step, before + self.steps(epoch))

    def arrays(self, batch: KeywordBatch) -> dict[str, np.ndarray]:
        """Features (batch, T, F) or samples (batch, S) float32, and targets (batch,) int32."""
        return {"features": batch.features, "targets": batch.targets}

    def losses(self, arrays: dict[str, Any], training: bool) -> Any:
        """Cross-entropy of each clip, in nats, (batch,) float32."""
        features = self._of_known_length(arrays["features"])
        logits = self.model(features, training=training)
        smoothing = self._config.training.label_smoothing if training else 0.0
        return cross_entropy(logits, arrays["targets"], smoothing)

    def evaluate(self) -> dict[str, float]:
        """Mean cross-entropy and error rate of the dev clips."""
        logits = logits_of(self.model, self._dev)
        losses = ops.convert_to_numpy(cross_entropy(logits, self._dev_targets))
        accuracy = float(np.mean(logits.argmax(axis=1) == self._dev_targets))
        return {"dev_loss": float(losses.mean()), self.metric: 1 - accuracy, "dev_accuracy": accuracy}

    def _of_known_length(self, features: Any) -> Any:
        """Give the arrays the known length that a compiled step lacks: (batch, T, F) or (batch, S)."""
        config = self._config
        samples = config.context_samples + config.clip_samples
        if config.features.kind == "raw":
            return ops.reshape(features, (-1, samples))
        frames = feature_frames(samples, config.features)
        return ops.reshape(features, (-1, frames, feature_values(config.features)))


def cross_entropy(logits: Any, targets: Any, smoothing: float = 0.0) -> Any:
    """Sparse categorical cross-entropy of logits, with optional label smoothing.

    Args:
        logits: (batch, labels).
        targets: (batch,) int32.
        smoothing: fraction of the target that is spread over all labels.

    Returns:
        (batch,) float32, in nats.
    """
    losses = ops.sparse_categorical_crossentropy(targets, logits, from_logits=True)
    if not smoothing:
        return losses
    uniform = -ops.mean(ops.log_softmax(logits, axis=-1), axis=-1)
    return (1.0 - smoothing) * losses + smoothing * uniform


def train_keyword(
    config: KeywordConfig, run: RunFolder, distribution: Distribution = SINGLE_PROCESS
) -> dict[str, float]:
    """Train ``config`` into ``run``, or resume it; return the metrics of the best evaluation.

    Raises:
        ConfigError, CorpusError, AudioError, RunError, TrainingError: see the message.
    """
    require(
        config.training.batch_clips % distribution.devices == 0,
        f"training.batch_clips={config.training.batch_clips} clips on {distribution.devices} devices",
        hint=f"a multiple of {distribution.devices}: each device gets as many clips",
    )
    prepare_backend(config.training, config.seed)
    clips = read_keyword_clips(config.data)
    if not clips["dev"]:
        raise CorpusError(
            "there are no clips to evaluate on",
            where=config.data.folder or None,
            hint=DEV_HINT,
        )
    labels = labels_of(config.data, clips)
    distribution.check_same("list of labels", labels)
    _write_labels(run, labels)
    model = distribution.build(
        lambda: build_keyword_model(
            config.model, config.features, config.clip_samples, len(labels), config.context_samples
        )
    )
    prepare_model(model, config, run, partial(_load_source, config.features, labels))
    _write_flags(run, config)
    _warn_of_low_rates(clips["train"], config.features.sample_rate)
    train_store, dev_store = (_load(config, clips[split]) for split in ("train", "dev"))
    test_store = _load(config, clips["test"]) if clips["test"] else None
    _check_clips(run, {"train": train_store, "dev": dev_store, "test": test_store})
    log.info(
        "%s: %s parameters, %d training and %d dev clips, %d labels",
        config.model.name,
        f"{model.count_params():,}",
        len(train_store.clips),
        len(dev_store.clips),
        len(labels),
    )
    return train(
        task=KeywordTask(
            model,
            config,
            batches=_train_batches(config, train_store, labels, distribution.shard),
            dev=features_of(dev_store, config.features, config.context_samples),
            dev_targets=targets_of(dev_store.clips, labels),
        ),
        run=run,
        config=config.training,
        optimiser=config.optimiser,
        distribution=distribution,
        test=partial(_test, config, run, model, labels, test_store) if test_store else None,
    )


def _train_batches(
    config: KeywordConfig, store: ClipStore, labels: Sequence[str], shard: tuple[int, int]
) -> KeywordBatches:
    return KeywordBatches(
        store,
        targets_of(store.clips, labels),
        config.training.batch_clips,
        config.features,
        config.augment,
        config.spec_augment,
        load_noises(noise_recordings(config.data), config.features.sample_rate, config.seed),
        config.seed,
        shard,
        config.context_samples,
    )


def _load_source(features: KeywordFeatureConfig, labels: Sequence[str], run: str) -> SourceModel:
    """The trained model of another run, and its output layer."""
    source = load_keyword_model(run)
    if source.features != features:
        differing = config_differences(to_plain(source.features), to_plain(features))
        log.warning("%s was trained on other features (%s)", run, describe_differences(differing))
    return source.model, {OUTPUT_LAYER: TokenLayer(Vocabulary(source.labels), Vocabulary(tuple(labels)))}


def _test(
    config: KeywordConfig,
    run: RunFolder,
    model: keras.Model,
    labels: Sequence[str],
    store: ClipStore,
) -> dict[str, float]:
    """Accuracy on the test clips; also writes it, in per cent, to ``accuracy_last.txt``."""
    features = features_of(store, config.features, config.context_samples)
    best_labels = logits_of(model, features).argmax(axis=1)
    accuracy = float(np.mean(best_labels == targets_of(store.clips, labels)))
    log.info("test accuracy of the last weights: %.2f %% of %d clips", 100 * accuracy, len(store.clips))
    write_text(run.last_accuracy, f"{100 * accuracy:.4f}\n")
    return {"accuracy": accuracy, "clips": len(store.clips)}


def targets_of(clips: Sequence[KeywordClip], labels: Sequence[str]) -> np.ndarray:
    """Indices of the clips' labels, (clips,) int32."""
    indices = {label: index for index, label in enumerate(labels)}
    return np.array([indices[clip.label] for clip in clips], np.int32)


def _warn_of_low_rates(clips: Sequence[KeywordClip], sample_rate: int) -> None:
    """Warn of recordings below the sample rate of the features: their upper mel filters would be empty."""
    rates = sample_rates_of([clip.audio for clip in clips if clip.audio])
    low = sum(count for rate, count in rates.items() if rate < sample_rate)
    if low:
        message = (
            "%d of %d checked recordings have a lower rate than features.sample_rate, %d Hz: their upper mel "
            "filters are empty; for telephone speech set features.sample_rate=%d"
        )
        log.warning(message, low, rates.total(), sample_rate, min(rates))


def _load(config: KeywordConfig, clips: Sequence[KeywordClip]) -> ClipStore:
    data = config.data
    return load_clips(clips, config.features.sample_rate, config.clip_samples, data.cache, data.workers)


def _write_labels(run: RunFolder, labels: Sequence[str]) -> None:
    """Save the labels; a resumed run must have the same labels."""
    if run.labels.is_file():
        before = read_labels(run.labels)
        if before != tuple(labels):
            raise RunError(
                f"the recordings have other labels than this run ({describe_difference(before, labels)})",
                where=run.labels,
                hint="choose another --run, or put the recordings back",
            )
    write_labels(run.labels, labels)


def _check_clips(run: RunFolder, stores: Mapping[str, ClipStore | None]) -> None:
    """A resumed run must have the same clips."""
    hashes = {split: _clips_hash(store.clips if store else ()) for split, store in stores.items()}
    if changed := changed_data(run, hashes):
        raise RunError(
            f"the recordings of {', '.join(changed)} are not those that this run was trained with",
            where=run.path,
            hint="choose another --run, or put the recordings back",
        )


def _clips_hash(clips: Sequence[KeywordClip]) -> str:
    """A hash of the clips without their paths: recordings may be moved."""
    rows = [f"{clip.id}\t{clip.label}\t{clip.start_seconds}\t{clip.seconds}\n" for clip in clips]
    return hashlib.sha256("".join(rows).encode()).hexdigest()


def _write_flags(run: RunFolder, config: KeywordConfig) -> None:
    """Write the settings as lines ``key=value`` and as JSON too, for programs without YAML."""
    plain = to_plain(config)
    write_text(run.flags, "".join(f"{key}={value}\n" for key, value in flatten(plain).items()))
    write_json(run.flags_json, plain)
