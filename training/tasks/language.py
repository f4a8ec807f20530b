"""Trains a pinyin → hanzi model: a network with the training loop, or n-grams by counting.

Texts or manifests become pairs of pinyin and hanzi. A network learns by cross-entropy over the candidate
hanzi of each syllable; n-gram models are estimated by interpolated Kneser-Ney smoothing. Networks over
candidates and the combined converter have files of their own.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from keras import ops

from data.batches.batching import plan_batches
from data.text.pinyin_pairs import Pair, read_pairs
from model_language.converters.combined_config import CombinedConfig
from model_language.converters.ngram import NgramConfig
from model_language.networks.causal_cnn_numpy import CausalCnnConfig
from model_language.networks.loss import candidate_logits, sequence_loss
from model_language.networks.punctuation_config import PunctuationConfig
from model_language.ngram.syllables import SyllableNgramConfig
from model_language.registry import CANDIDATE_NETWORKS, INPUT_LAYER, MODELS, OUTPUT_LAYER, load_network
from model_language.vocabulary.symbols import PAD_ID, Symbols, symbols_of_run
from training.distributed.distribution import SINGLE_PROCESS, Distribution
from training.initialise import TokenLayer
from training.loop import prepare_backend, train
from training.tasks.candidate_network import train_candidate_network
from training.tasks.causal_cnn import train_causal_cnn
from training.tasks.language_config import LanguageConfig
from training.tasks.ngram import count_ngrams, count_syllables, make_combined
from training.tasks.punctuation import train_punctuation
from training.tasks.recipe import SourceModel, prepare_model
from training.tasks.sequence_task import TRAIN_EVALUATED, SequenceTask, TokenPairs, spaced
from utils.arrays import pad_rows
from utils.errors import require
from utils.run_folder.run import RunFolder

log = logging.getLogger("train")


EncodedPair = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class SentenceBatch:
    """Sentences padded with 0 to a common length.

    Attributes:
        ids: numbers of the sentences in the training text; of the whole batch, even if the arrays hold only
            a part of it.
        syllables: (batch, length) int32.
        targets: (batch, length) int32 hanzi ids.
    """

    ids: list[str]
    syllables: np.ndarray
    targets: np.ndarray


class LanguageTask(SequenceTask):
    """Cross-entropy over the candidates of each syllable; the evaluation takes the best candidate.

    Args:
        model: a network of ``model_language``.
        config: batch sizes, seed and label smoothing.
        symbols: vocabularies and candidates.
        train: encoded pairs, (length,) int32 syllables and hanzi each.
        dev: the same.
        shard: (index, count): this process trains the rows i of each batch with i % count = index.
    """

    inputs = ("syllables",)
    metric = "dev_character_error_rate"

    def __init__(
        self,
        model: Any,
        config: LanguageConfig,
        symbols: Symbols,
        train: Sequence[EncodedPair],
        dev: Sequence[EncodedPair],
        shard: tuple[int, int] = (0, 1),
    ):
        super().__init__(model)
        self._config, self._symbols, self._candidates = config, symbols, symbols.candidates
        self._train, self._dev, self._shard = train, dev, shard
        self._train_lengths = np.array([len(syllables) for syllables, _ in train])
        self._evaluated = spaced(train, TRAIN_EVALUATED)
        self._evaluated_lengths = np.array([len(syllables) for syllables, _ in self._evaluated])
        self._dev_lengths = np.array([len(syllables) for syllables, _ in dev])

    def steps(self, epoch: int) -> int:
        """Number of training batches in an epoch."""
        return len(self._plan(self._train_lengths, epoch, shuffle=True))

    def batches(self, epoch: int, first_step: int) -> Iterator[SentenceBatch]:
        """The training batches of an epoch from ``first_step`` on."""
        for indices in self._plan(self._train_lengths, epoch, shuffle=True)[first_step:]:
            yield _pad(self._train, indices, self._shard)

    def arrays(self, batch: SentenceBatch) -> dict[str, np.ndarray]:
        """Syllables and targets, both (batch, length) int32."""
        return {"syllables": batch.syllables, "targets": batch.targets}

    def loss(self, arrays: dict[str, Any], logits: Any, training: bool) -> Any:
        """Cross-entropy over the candidates, summed over a sentence, in nats, (batch,) float32."""
        smoothing = self._config.model.label_smoothing if training else 0.0
        syllables, targets = arrays["syllables"], arrays["targets"]
        losses, _ = sequence_loss(logits, syllables, targets, self._candidates, smoothing)  # (batch, length)
        return ops.sum(losses, axis=1)

    def tokens(self, arrays: dict[str, np.ndarray], logits: np.ndarray) -> TokenPairs:
        """The hanzi ids of the reference, and the best candidate of each syllable."""
        found = candidate_logits(logits, arrays["syllables"], self._candidates)
        picked, hanzi = map(ops.convert_to_numpy, found)  # (batch, length, K) each
        best = np.take_along_axis(hanzi, picked.argmax(axis=-1)[:, :, None], axis=-1)[:, :, 0]
        for syllables, reference, row in zip(arrays["syllables"], arrays["targets"], best, strict=True):
            valid = syllables != PAD_ID
            yield reference[valid].tolist(), row[valid].tolist()

    def dev_batches(self) -> Iterator[SentenceBatch]:
        """The batches of the dev set."""
        for indices in self._plan(self._dev_lengths, epoch=1, shuffle=False):
            yield _pad(self._dev, indices)

    def train_batches(self) -> Iterator[SentenceBatch]:
        """Some training sentences."""
        for indices in self._plan(self._evaluated_lengths, epoch=1, shuffle=False):
            yield _pad(self._evaluated, indices)

    def text(self, tokens: Sequence[Any]) -> str:
        """Hanzi."""
        return self._symbols.decode(tokens)

    def _plan(self, lengths: np.ndarray, epoch: int, shuffle: bool) -> list[np.ndarray]:
        data = self._config.data
        return plan_batches(
            lengths,
            batch_frames=data.batch_syllables,
            max_batch=data.batch_sentences,
            seed=self._config.seed,
            epoch=epoch,
            shuffle=shuffle,
            frame_multiple=1,
        )


def train_language(
    config: LanguageConfig, run: RunFolder, distribution: Distribution = SINGLE_PROCESS
) -> dict[str, float]:
    """Train ``config`` into ``run`` (or continue its training); returns the metrics of the best epoch.

    Raises:
        ConfigError, CorpusError, TrainingError: see the message.
    """
    data = config.data
    require(
        data.train and data.dev,
        "data.train or data.dev is empty",
        hint="both need a text, see configs/language",
    )
    require(
        distribution is SINGLE_PROCESS or MODELS[config.model.name].build is not None,
        f"model.name={config.model.name} is estimated by counting, in one process",
        hint="leave --distribute out",
    )
    if config.model.name in CANDIDATE_NETWORKS:
        return train_candidate_network(config, run, distribution)
    if isinstance(config.model, CausalCnnConfig):
        return train_causal_cnn(config, run, distribution)
    if isinstance(config.model, PunctuationConfig):
        return train_punctuation(config, run, distribution)
    if isinstance(config.model, CombinedConfig):
        return make_combined(config, run)
    all_pairs, dev_pairs = (read_pairs(lists, cache=data.cache) for lists in (data.train, data.dev))
    train_pairs = all_pairs[: data.limit or None]
    log.info("%s: %d training and %d dev sentences", config.model.name, len(train_pairs), len(dev_pairs))
    _report_overlap(train_pairs, dev_pairs)
    if isinstance(config.model, SyllableNgramConfig):
        return count_syllables(config, run, train_pairs, dev_pairs)
    symbols = symbols_of_run(run, lambda: all_pairs)
    if isinstance(config.model, NgramConfig):
        return count_ngrams(config, run, symbols, train_pairs, dev_pairs)
    prepare_backend(config.training, config.seed)
    distribution.check_same("vocabulary", [symbols.pinyin.tokens, symbols.hanzi.tokens])
    build = MODELS[config.model.name].build
    assert build  # the n-gram models were counted above
    model = distribution.build(lambda: build(config.model, symbols, run))
    prepare_model(model, config, run, partial(_load_source, symbols))
    train_set, dev_set = (
        [symbols.encode_pair(*pair) for pair in pairs] for pairs in (train_pairs, dev_pairs)
    )
    task = LanguageTask(model, config, symbols, train_set, dev_set, distribution.shard)
    return train(
        task=task,
        run=run,
        config=config.training,
        optimiser=config.optimiser,
        distribution=distribution,
        examples=task.examples,
    )


def _load_source(symbols: Symbols, run: str) -> SourceModel:
    """The trained network of another run, its embedding and its output layer."""
    source, theirs = load_network(run)
    return source, {
        INPUT_LAYER: TokenLayer(theirs.pinyin, symbols.pinyin, axis=0),
        OUTPUT_LAYER: TokenLayer(theirs.hanzi, symbols.hanzi),
    }


def _report_overlap(train_pairs: Sequence[Pair], dev_pairs: Sequence[Pair]) -> None:
    """Warn of dev sentences that are training sentences too: the model has memorised them."""
    known = {pair.hanzi for pair in train_pairs}
    count = sum(pair.hanzi in known for pair in dev_pairs)
    if count:
        log.warning(
            "%d of %d dev sentences are training sentences too: the dev figures are better than those of new "
            "texts",
            count,
            len(dev_pairs),
        )


def _pad(pairs: Sequence[EncodedPair], indices: np.ndarray, shard: tuple[int, int] = (0, 1)) -> SentenceBatch:
    index, count = shard
    rows = zip(*(pairs[i] for i in indices), strict=True)
    syllables, targets = (pad_rows(side)[index::count] for side in rows)
    return SentenceBatch([f"sentence {i + 1}" for i in indices], syllables, targets)
