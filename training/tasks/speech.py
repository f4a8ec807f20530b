"""Trains an acoustic model with CTC on the utterances of manifests, into a run folder.

`train_speech` prepares cached features, labels and the model, and passes them to the training loop as a
`SpeechTask`. Training utterances with more labels than output frames are skipped.
"""

import logging
from collections import ChainMap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import keras
import numpy as np

from data.batches.batching import Batch, BatchSource
from data.batches.mixture import WeightedCorpus
from data.batches.packed_source import PackedCorpus, PackedSource
from data.corpora.tools.lists import read_utterances
from data.features.augment import AugmentConfig
from data.features.cache import prepare_features
from data.features.spec_augment import SpecAugmentConfig
from data.manifest import Utterance
from model_speech.acoustic_model import load_acoustic_model
from model_speech.ctc.decoder import best_tokens
from model_speech.ctc.distillation import distillation_loss
from model_speech.ctc.loss import ctc_loss, output_lengths
from model_speech.registry import MODELS
from model_speech.vocabulary_transfer import OUTPUT_LAYER
from training.distillation import DistillationConfig, load_teacher
from training.distributed.distribution import SINGLE_PROCESS, Distribution
from training.initialise import TokenLayer
from training.loop import prepare_backend, train
from training.splicing import Splicer
from training.stored_head import HeadConfig, train_head
from training.tasks.adaptation import INITIAL, InitialModelConfig, hold_out
from training.tasks.packed_corpora import open_packed, packed_source
from training.tasks.recipe import Recipe, SourceModel, prepare_model
from training.tasks.sequence_task import TRAIN_EVALUATED, SequenceTask, TokenPairs, spaced
from training.utterance_checks import report_skipped, too_short, warn_of_changed_utterances
from utils.config import ConfigClasses
from utils.errors import CorpusError, require
from utils.features.settings import FeatureConfig, feature_bins, settings_hash
from utils.limits import Count, Fraction, Limited, Size, check_choice
from utils.mandarin.output_units import HANZI, TONAL, UNITS, compared, read_tokens, tokens_of
from utils.mandarin.pinyin import is_hanzi
from utils.run_folder.run import RunFolder
from utils.vocabulary import BLANK, Vocabulary, acoustic_vocabulary, first_few

log = logging.getLogger("train")

ACOUSTIC = "acoustic.txt"
MOST_PASSES = 1000  # over a manifest in an epoch


@dataclass(frozen=True)
class SpeechDataConfig(Limited, section="data"):
    """Manifests and batch sizes.

    Attributes:
        train: manifests of the training set, or packed corpora (``training.feature_shards --pack``).
        weights: passes over each training manifest in an epoch; empty: one pass each. With 0.25 each epoch
            reads a different quarter of the manifest, with 3 it reads the manifest three times.
        dev: manifests of the dev set, which selects the best epoch.
        hold_out: without ``dev``, every sentence with this number in the first training manifest becomes the
            dev set, and is left out of the others; 0: ``dev`` must be given.
        test: manifests that ``test.py --split test`` decodes.
        cache: folder of the feature shards, shared by all runs.
        workers: processes that compute features.
        batch_frames: maximum number of feature frames in a batch, with padding.
        batch_utterances: maximum number of utterances in a batch.
        buckets: number of shapes of the batches; 0: as little padding as possible, and many shapes. For
            backends that compile a step for each shape: JAX, or TensorFlow with XLA.
        splice: fraction of the training utterances of which a random end is replaced by that of another
            utterance of their speaker (:mod:`training.splicing`); needs a teacher.
        limit: use only this number of training utterances, the first ones; 0: all. The vocabulary is always
            built from all, so the weights of a trial fit the full training.
    """

    train: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    dev: tuple[str, ...] = ()
    hold_out: Size = 0
    test: tuple[str, ...] = ()
    cache: str = "datasets/features"
    workers: Count = 2
    batch_frames: Count = 12_000
    batch_utterances: Count = 32
    buckets: Size = 0
    splice: Fraction = 0.0
    limit: Size = 0

    def __post_init__(self):
        super().__post_init__()
        require(
            self.hold_out != 1, "data.hold_out is 1: nothing is left to train on", hint="0, or at least 2"
        )
        require(
            not self.weights or len(self.weights) == len(self.train),
            f"data.weights has {len(self.weights)} entries for {len(self.train)} manifests",
            hint="one for each entry of data.train, or none at all",
        )
        require(
            all(0 < weight <= MOST_PASSES for weight in self.weights),
            f"data.weights is {self.weights}",
            hint=f"passes an epoch, above 0 and at most {MOST_PASSES:,}; to leave a manifest out, take it "
            "from data.train",
        )


@dataclass(frozen=True)
class VocabularyConfig(Limited, section="vocabulary"):
    """The classes of the model; one that is initialised from another run keeps its classes, if they suffice.

    Attributes:
        units: what a class stands for, see :mod:`utils.mandarin.output_units`; empty: the same as in ``file``
            or in the run of ``initialise_from``, else tonal syllables.
        file: a vocabulary, such as another run's ``vocabulary/acoustic.txt``: exactly these classes.
    """

    units: str = ""
    file: str = ""

    def __post_init__(self):
        super().__post_init__()
        if self.units:
            check_choice(self, "vocabulary", units=UNITS)


@dataclass(frozen=True)
class SpeechConfig(Recipe):
    """A recipe of an acoustic model; ``initialise_from`` takes the weights of syllables by name.

    The model ``initial`` is that of the run in ``initialise_from``.
    """

    task: str = "speech"
    features: FeatureConfig = field(default_factory=FeatureConfig)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    spec_augment: SpecAugmentConfig = field(default_factory=SpecAugmentConfig)
    data: SpeechDataConfig = field(default_factory=SpeechDataConfig)
    vocabulary: VocabularyConfig = field(default_factory=VocabularyConfig)
    distillation: DistillationConfig = field(default_factory=DistillationConfig)
    head: HeadConfig = field(default_factory=HeadConfig)

    def __post_init__(self):
        super().__post_init__()
        require(
            not self.data.splice or self.distillation.teacher,
            f"data.splice is {self.data.splice} without a teacher",
            hint="a run in distillation.teacher, which says where the syllables are, or data.splice=0",
        )


_MODEL_CONFIGS: Any = ConfigClasses(MODELS)
VARIANTS = {"model": ChainMap(_MODEL_CONFIGS, {INITIAL: InitialModelConfig})}


class SpeechTask(SequenceTask):
    """CTC training on cached features; evaluation by greedy decoding of the dev set.

    Args:
        model: a network of ``model_speech``.
        vocabulary: the acoustic vocabulary, blank last.
        time_stride: feature frames for each output frame.
        train: source of training batches.
        dev: source of dev batches (not shuffled, not augmented).
        shard: (index, count): the part of each training batch to read, see ``BatchSource.batches``.
        distillation_weight: of the distillation loss, where the training batches have a teacher's targets.
        evaluated_train: source of the training utterances whose error rate is measured; None: none.
    """

    inputs = ("features", "lengths")
    metric = "dev_syllable_error_rate"

    def __init__(
        self,
        model: keras.Model,
        vocabulary: Vocabulary,
        time_stride: int,
        train: BatchSource | PackedSource,
        dev: BatchSource,
        shard: tuple[int, int] = (0, 1),
        distillation_weight: float = 1.0,
        evaluated_train: BatchSource | None = None,
    ):
        super().__init__(model)
        self._vocabulary, self._units = vocabulary, vocabulary.units
        if self._units == HANZI:
            self.metric = "dev_character_error_rate"
        self._time_stride = time_stride
        self._distillation_weight, self._evaluated_train = distillation_weight, evaluated_train
        self._train, self._dev, self._shard = train, dev, shard

    def steps(self, epoch: int) -> int:
        """Number of training batches in an epoch."""
        return self._train.steps(epoch)

    def batches(self, epoch: int, first_step: int) -> Iterator[Batch]:
        """An epoch's training batches from ``first_step`` on."""
        return self._train.batches(epoch, first_step, self._shard)

    def arrays(self, batch: Batch) -> dict[str, np.ndarray]:
        """Features (batch, frames, bins) float32, labels (batch, labels) int32 and both lengths."""
        arrays = {
            "features": batch.features,
            "lengths": batch.feature_lengths,
            "labels": batch.labels,
            "label_lengths": batch.label_lengths,
            "teacher_classes": batch.teacher_classes,
            "teacher_probabilities": batch.teacher_probabilities,
        }
        return {name: array for name, array in arrays.items() if array is not None}

    def losses(self, arrays: dict[str, Any], training: bool) -> Any:
        """CTC loss of each utterance, in nats, (batch,) float32.

        With a teacher the weighted distillation loss is added.
        """
        logits = self.model({name: arrays[name] for name in self.inputs}, training=training)
        losses = self.loss(arrays, logits, training)
        if "teacher_classes" in arrays:
            frames = output_lengths(arrays["lengths"], self._time_stride)
            targets = arrays["teacher_classes"], arrays["teacher_probabilities"]
            losses += self._distillation_weight * distillation_loss(*targets, logits, frames)
        return losses

    def dev_batches(self) -> Iterator[Batch]:
        """The batches of the dev set."""
        return self._dev.batches(epoch=1, first_step=0)

    def train_batches(self) -> Iterable[Batch]:
        """Training utterances as recorded, without masks."""
        return self._evaluated_train.batches(epoch=1, first_step=0) if self._evaluated_train else ()

    def text(self, tokens: Sequence[str]) -> str:
        """With spaces between the syllables or hanzi."""
        return " ".join(tokens)

    def loss(self, arrays: dict[str, Any], logits: Any, training: bool) -> Any:
        """CTC loss of each utterance, in nats, (batch,) float32."""
        frames = output_lengths(arrays["lengths"], self._time_stride)
        return ctc_loss(
            arrays["labels"], logits, arrays["label_lengths"], frames, self._vocabulary.blank_index
        )

    def tokens(self, arrays: dict[str, np.ndarray], logits: np.ndarray) -> TokenPairs:
        """The syllables of the labels and of the best path; with hanzi as output units, the hanzi."""
        found = best_tokens(
            logits, output_lengths(arrays["lengths"], self._time_stride), self._vocabulary.blank_index
        )
        rows = zip(arrays["labels"], arrays["label_lengths"], found, strict=True)
        return [
            (self._read(labels[:length].tolist()), self._read(hypothesis))
            for labels, length, hypothesis in rows
        ]

    def _read(self, classes: Sequence[int]) -> Sequence[str]:
        pinyin, _, hanzi = read_tokens(self._units, self._vocabulary.decode(classes))
        return compared(self._units, pinyin, hanzi)


def train_speech(
    config: SpeechConfig, run: RunFolder, distribution: Distribution = SINGLE_PROCESS
) -> dict[str, float]:
    """Train ``config`` into ``run``, or resume it; return the metrics of the best epoch.

    Raises:
        ConfigError, CorpusError, AudioError, VocabularyError, TrainingError: see the message.
    """
    prepare_backend(config.training, config.seed)
    packed = open_packed(config)
    corpora, dev_utterances = ([], _read_dev(config)) if packed else _read(config)
    train_utterances = list(chain.from_iterable(corpora))
    vocabulary = _vocabulary(config, run, [*train_utterances, *dev_utterances], packed)
    distribution.check_same("vocabulary", vocabulary.tokens)
    warn_of_changed_utterances(run, {"data.train": train_utterances, "data.dev": dev_utterances})
    build, bins = MODELS[config.model.name].build, feature_bins(config.features)
    model = distribution.build(lambda: build(config.model, bins, len(vocabulary)))
    prepare_model(model, config, run, partial(_load_source, config.features, vocabulary))
    require(
        not config.head.after or not (packed or distribution is not SINGLE_PROCESS),
        "head.after with a packed corpus or with --distribute",
        hint="train the head in a run of its own on one device, and name this run in initialise_from",
    )
    evaluated_train = None
    if packed:
        train_source = packed_source(config, vocabulary, packed, too_short)
    else:
        evaluated = spaced(train_utterances[: config.data.limit or None], TRAIN_EVALUATED)
        evaluated_train = _evaluated_source(config, vocabulary, evaluated)
        sizes = [len(corpus) for corpus in corpora]
        train_source = _train_source(config, run, vocabulary, train_utterances, sizes)
    dev_source = _dev_source(config, vocabulary, dev_utterances)
    task = SpeechTask(
        model,
        vocabulary,
        config.model.time_stride,
        train_source,
        dev_source,
        distribution.shard,
        config.distillation.weight,
        evaluated_train,
    )
    log.info(
        "%s: %s parameters, %d training and %d dev utterances, %d tokens",
        config.model.name,
        f"{model.count_params():,}",
        train_source.utterance_count,
        len(dev_utterances),
        len(vocabulary),
    )
    if config.head.after and not run.checkpoint.is_file():
        assert isinstance(train_source, BatchSource)  # not a packed corpus, see above
        train_head(
            model, config.head, train_source, config.model.time_stride, vocabulary.blank_index, config.seed
        )
    return train(
        task=task,
        run=run,
        config=config.training,
        optimiser=config.optimiser,
        distribution=distribution,
        examples=task.examples,
    )


def _read(config: SpeechConfig) -> tuple[list[list[Utterance]], list[Utterance]]:
    """The utterances of each train manifest, and those of all dev manifests or the held-out utterances."""
    data = config.data
    require(
        data.train and (data.dev or data.hold_out),
        "data.train and data.dev each need a manifest",
        hint="see configs/speech",
    )
    corpora = [read_utterances(path) for path in data.train]
    _require_utterances(data.train, sum(map(len, corpora)))
    if data.dev:
        return corpora, _read_dev(config)
    return hold_out(corpora, data.hold_out)


def _read_dev(config: SpeechConfig) -> list[Utterance]:
    utterances = [utterance for path in config.data.dev for utterance in read_utterances(path)]
    _require_utterances(config.data.dev, len(utterances))
    return utterances


def _require_utterances(manifests: Sequence[str], count: int) -> None:
    require(
        count,
        "no utterance in the manifests",
        where=", ".join(manifests),
        hint="each line after the header is an utterance: see docs/guide.md",
        error=CorpusError,
    )


def _load_source(features: FeatureConfig, vocabulary: Vocabulary, run: str) -> SourceModel:
    """The trained model of another run, and its output layer."""
    source = load_acoustic_model(run)
    if settings_hash(source.features) != settings_hash(features):
        log.warning("%s was trained on other features: see its config.yaml", run)
    return source.model, {OUTPUT_LAYER: TokenLayer(source.vocabulary, vocabulary)}


def _vocabulary(
    config: SpeechConfig, run: RunFolder, utterances: Sequence[Utterance], packed: Sequence[PackedCorpus]
) -> Vocabulary:
    path = run.vocabulary(ACOUSTIC)
    if path.is_file():
        return Vocabulary.load(path)
    units = config.vocabulary.units
    require(
        not packed or units == TONAL,
        f"vocabulary.units={units} with a packed corpus",
        hint="name the manifests in data.train",
    )
    foreign = [each for each in utterances if each.hanzi and not is_hanzi(each.hanzi)]
    if units == HANZI and foreign:
        raise CorpusError(
            f"{len(foreign)} texts have other characters than hanzi, such as '{foreign[0].hanzi}'",
            where=f"utterance {foreign[0].id}",
            hint="prepare the corpus again, or train on syllables",
        )
    seen = {token for each in utterances for token in tokens_of(units, each.pinyin, each.hanzi)}
    seen = seen.union(*(corpus.syllables for corpus in packed))
    vocabulary = _known_vocabulary(config, seen) or acoustic_vocabulary(seen, units)
    vocabulary.save(path)
    return vocabulary


def given_vocabulary(config: VocabularyConfig) -> Vocabulary:
    """The vocabulary in ``file``.

    Raises:
        VocabularyError: the file is missing or damaged.
        ConfigError: its last token is not the blank, or it has other units.
    """
    vocabulary = Vocabulary.load(config.file)
    require(
        vocabulary.tokens[-1] == BLANK,
        f"the vocabulary has no blank '{BLANK}' at its end",
        where=config.file,
        hint=f"make a line '{BLANK}' the last one, or use an acoustic vocabulary: a run's "
        "vocabulary/acoustic.txt, or the output of data.vocabularies",
    )
    require(
        vocabulary.units == config.units,
        f"a vocabulary of {vocabulary.units}, and vocabulary.units={config.units}",
        where=config.file,
        hint=f"set vocabulary.units={vocabulary.units}, or use another vocabulary",
    )
    return vocabulary


def _known_vocabulary(config: SpeechConfig, seen: set[str]) -> Vocabulary | None:
    """That of ``vocabulary.file``, or that of the run to begin with if it has all tokens of the data."""
    if config.vocabulary.file:
        return given_vocabulary(config.vocabulary)
    if config.initialise_from:
        source = RunFolder(Path(config.initialise_from)).vocabulary(ACOUSTIC)
        if source.is_file() and seen.issubset((vocabulary := Vocabulary.load(source)).tokens):
            return vocabulary
    return None


def encoded_labels(vocabulary: Vocabulary, utterances: Sequence[Utterance]) -> list[np.ndarray]:
    """The classes of each utterance, (labels,) int32.

    Raises:
        VocabularyError: a token is not in the vocabulary.
    """
    return [
        vocabulary.encode(tokens_of(vocabulary.units, each.pinyin, each.hanzi), each.id, each.audio)
        for each in utterances
    ]


def _train_source(
    config: SpeechConfig,
    run: RunFolder,
    vocabulary: Vocabulary,
    utterances: list[Utterance],
    sizes: Sequence[int],
) -> BatchSource:
    """Training batches; ``utterances`` are those of all corpora in order, ``sizes`` the number of each."""
    data = config.data
    corpus_of = np.repeat(np.arange(len(sizes)), sizes)[: data.limit or None]
    utterances = utterances[: data.limit or None]
    copies = (data.cache, config.augment, data.workers, config.seed)
    student = (config.features, config.model.time_stride, vocabulary)
    teacher = load_teacher(config.distillation, *student, utterances, copies)
    cache = prepare_features(utterances, config.features, *copies)
    labels = encoded_labels(vocabulary, utterances)
    short = too_short(cache, utterances, labels, config.model.time_stride)
    report_skipped(short, utterances, run)
    kept = [index for index in range(len(utterances)) if index not in short]
    counts = np.bincount(corpus_of[kept], minlength=len(sizes)).tolist()
    weights = data.weights or [1.0] * len(sizes)
    mixture = [WeightedCorpus(*corpus) for corpus in zip(counts, weights, strict=True)]
    _report_mixture(data.train, mixture, run)
    splicer = Splicer(data.splice, config.model.time_stride, vocabulary.blank_index)
    return BatchSource(
        cache,
        [utterances[index] for index in kept],
        [labels[index] for index in kept],
        batch_frames=data.batch_frames,
        max_batch=data.batch_utterances,
        buckets=data.buckets,
        seed=config.seed,
        shuffle=True,
        spec_augment=config.spec_augment,
        mixture=mixture,
        teacher=teacher,
        splicer=splicer if data.splice else None,
    )


def _dev_source(config: SpeechConfig, vocabulary: Vocabulary, utterances: list[Utterance]) -> BatchSource:
    source = _evaluated_source(config, vocabulary, utterances)
    short = too_short(source.cache, utterances, list(source.labels), config.model.time_stride)
    if short:
        log.warning(
            "%d dev utterances are too short for their labels (dev_loss counts them as 0, "
            "the error rate in full): %s",
            len(short),
            first_few([utterances[index].id for index in short]),
        )
    return source


def _evaluated_source(
    config: SpeechConfig, vocabulary: Vocabulary, utterances: list[Utterance]
) -> BatchSource:
    """The recordings themselves, in order, without masks."""
    data = config.data
    return BatchSource(
        prepare_features(utterances, config.features, data.cache, workers=data.workers),
        utterances,
        encoded_labels(vocabulary, utterances),
        batch_frames=data.batch_frames,
        max_batch=data.batch_utterances,
        buckets=data.buckets,
    )


def _report_mixture(manifests: Sequence[str], mixture: Sequence[WeightedCorpus], run: RunFolder) -> None:
    """Log what each manifest contributes, and record it in config.yaml."""
    require(
        any(corpus.count(1) for corpus in mixture),
        "the first epoch would read no utterance",
        hint="raise data.weights",
    )
    corpora = [
        {
            "manifest": manifest,
            "utterances": corpus.utterances,
            "weight": corpus.weight,
            "first_epoch": corpus.count(1),
        }
        for manifest, corpus in zip(manifests, mixture, strict=True)
    ]
    for corpus in corpora:
        log.info("%(manifest)s: %(utterances)d utterances x %(weight)g: %(first_epoch)d an epoch", corpus)
    run.record("corpora", corpora)
