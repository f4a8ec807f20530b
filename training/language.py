"""Training of a pinyin → hanzi model: text or manifests → pairs → the task that the loop trains."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from keras import ops

from data.batching import plan_batches
from data.text import Pair, read_pairs
from model_language.loss import candidate_logits, sequence_loss
from model_language.ngram import NgramConfig, NgramConverter, NgramModel
from model_language.registry import MODELS, NGRAM_FILE
from model_language.symbols import PAD_ID, Symbols, build_symbols
from training.loop import TrainingConfig, prepare_backend, train
from training.optimiser import OptimiserConfig
from training.summary import summary_text
from utils.config import at_least
from utils.errors import ConfigError
from utils.files import write_json, write_text
from utils.metrics import count_errors, total
from utils.run import RunFolder

log = logging.getLogger("train")


@dataclass(frozen=True)
class LanguageDataConfig:
    """Where the pairs of pinyin and hanzi come from, and how they become batches.

    Attributes:
        train: manifests, transcript lists or plain text files to learn from.
        dev: the same, to pick the best epoch.
        test: the same, for ``test.py --split test``.
        cache: folder that keeps the pinyin of plain text files.
        batch_syllables: padded syllables in a batch, at most.
        batch_sentences: sentences in a batch, at most.
        limit: only the first so many training sentences; 0 means all.
    """

    train: tuple[str, ...] = ()
    dev: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    cache: str = "datasets/text"
    batch_syllables: int = 4_000
    batch_sentences: int = 256
    limit: int = 0

    def __post_init__(self):
        at_least(self, "data", batch_syllables=1, batch_sentences=1, limit=0)


@dataclass(frozen=True)
class LanguageConfig:
    """A recipe of a pinyin → hanzi model; ``model`` holds the config class of the named model."""

    task: str = "language"
    seed: int = 0
    data: LanguageDataConfig = field(default_factory=LanguageDataConfig)
    model: Any = None
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)


VARIANTS = {"model": {name: entry.config for name, entry in MODELS.items()}}


EncodedPair = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class SentenceBatch:
    """Sentences padded with 0 to a common length.

    Attributes:
        ids: one a sentence: its number in the training text.
        syllables: (batch, length) int32.
        targets: (batch, length) int32 hanzi ids.
    """

    ids: list[str]
    syllables: np.ndarray
    targets: np.ndarray


class LanguageTask:
    """Cross-entropy over the candidates of each syllable; evaluation is the best candidate everywhere.

    Args:
        model: from ``model_language``.
        config: batch sizes, seed and label smoothing are read from it.
        symbols: vocabularies and candidates.
        train: encoded pairs, (length,) int32 syllables and hanzi each.
        dev: the same.
    """

    metric = "dev_character_error_rate"

    def __init__(
        self,
        model: Any,
        config: LanguageConfig,
        symbols: Symbols,
        train: Sequence[EncodedPair],
        dev: Sequence[EncodedPair],
    ):
        self.model = model
        # Without this, Keras may compile every new shape of a dev batch with XLA on a GPU.
        model.compile(optimizer=None, jit_compile=False)
        self._config, self._candidates = config, symbols.candidates
        self._train, self._dev = train, dev
        self._train_lengths = np.array([len(syllables) for syllables, _ in train])
        self._dev_lengths = np.array([len(syllables) for syllables, _ in dev])

    def steps(self, epoch: int) -> int:
        """Number of training batches in an epoch."""
        return len(self._plan(self._train_lengths, epoch, shuffle=True))

    def batches(self, epoch: int, first_step: int) -> Iterator[SentenceBatch]:
        """An epoch's training batches from ``first_step`` on."""
        for indices in self._plan(self._train_lengths, epoch, shuffle=True)[first_step:]:
            yield _pad(self._train, indices)

    def arrays(self, batch: SentenceBatch) -> dict[str, np.ndarray]:
        """Syllables and targets, both (batch, length) int32."""
        return {"syllables": batch.syllables, "targets": batch.targets}

    def losses(self, arrays: dict[str, Any], training: bool) -> Any:
        """Cross-entropy of each sentence, in nats, (batch,) float32."""
        logits = self.model({"syllables": arrays["syllables"]}, training=training)
        smoothing = self._config.model.label_smoothing if training else 0.0
        losses, _ = sequence_loss(logits, arrays["syllables"], arrays["targets"], self._candidates, smoothing)
        return ops.sum(losses, axis=1)

    def evaluate(self) -> dict[str, float]:
        """Mean cross-entropy a sentence and character error rate of the dev set."""
        loss, errors = 0.0, 0
        for indices in self._plan(self._dev_lengths, epoch=1, shuffle=False):
            batch = _pad(self._dev, indices)
            logits = self.model.predict_on_batch({"syllables": batch.syllables})
            loss += float(np.sum(sequence_loss(logits, batch.syllables, batch.targets, self._candidates)[0]))
            picked, rows = (
                np.asarray(a) for a in candidate_logits(logits, batch.syllables, self._candidates)
            )
            best = np.take_along_axis(rows, picked.argmax(axis=-1)[:, :, None], axis=-1)[:, :, 0]  # (B, L)
            for row, target, length in zip(best, batch.targets, self._dev_lengths[indices], strict=True):
                errors += count_errors(target[:length].tolist(), row[:length].tolist()).errors
        return {"dev_loss": loss / len(self._dev), self.metric: errors / max(int(self._dev_lengths.sum()), 1)}

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


def train_language(config: LanguageConfig, run: RunFolder) -> dict[str, float]:
    """Train ``config`` into ``run`` (or go on where it was); returns the best epoch's figures.

    Raises:
        ConfigError, CorpusError, TrainingError: see the message.
    """
    data = config.data
    if not data.train or not data.dev:
        raise ConfigError("data.train and data.dev each need a text", hint="see configs/language")
    train_pairs, dev_pairs = _read(data.train, data.cache), _read(data.dev, data.cache)
    symbols = _symbols(run, train_pairs)
    train_pairs = train_pairs[: data.limit or None]
    log.info("%s: %d training and %d dev sentences", config.model.name, len(train_pairs), len(dev_pairs))
    if isinstance(config.model, NgramConfig):
        return _count_ngrams(config, run, symbols, train_pairs, dev_pairs)
    prepare_backend(config.training, config.seed)
    model = MODELS[config.model.name].build(config.model, len(symbols.pinyin), len(symbols.hanzi))
    write_text(run.path / "model_summary.txt", summary_text(model))
    encoded = [[symbols.encode_pair(*pair) for pair in pairs] for pairs in (train_pairs, dev_pairs)]
    return train(LanguageTask(model, config, symbols, *encoded), run, config.training, config.optimiser)


def _read(sources: Sequence[str], cache: str) -> list[Pair]:
    found = read_pairs(sources, cache=cache)
    if found.rejected:
        log.warning(
            "%d lines of %s hold something else than hanzi: left out", found.rejected, ", ".join(sources)
        )
    return found.pairs


def _symbols(run: RunFolder, pairs: Sequence[Pair]) -> Symbols:
    if run.vocabulary("lexicon.tsv").is_file():  # the last of the three files to be written
        return Symbols.load(run.path)
    symbols = build_symbols(pairs)
    symbols.save(run.path)
    return symbols


def _count_ngrams(
    config: LanguageConfig,
    run: RunFolder,
    symbols: Symbols,
    train_pairs: Sequence[Pair],
    dev_pairs: Sequence[Pair],
) -> dict[str, float]:
    """Estimate an n-gram model: counting instead of epochs, the same files in the run folder."""
    model = NgramModel.train(train_pairs, config.model, symbols)
    model.save(run.path / NGRAM_FILE)
    counts = ", ".join(f"{number:,} {order}-grams" for order, number in enumerate(model.ngrams, start=1))
    write_text(run.path / "model_summary.txt", f"interpolated Kneser-Ney, {counts}\n")
    converted = NgramConverter(model, symbols, config.model.beam).convert([pair.pinyin for pair in dev_pairs])
    counted = total(count_errors(pair.hanzi, hanzi) for pair, hanzi in zip(dev_pairs, converted, strict=True))
    best = {LanguageTask.metric: counted.rate}
    log.info("%s; %s %.4f", counts, *next(iter(best.items())))
    write_json(run.metrics, {"best": best, "last": best, "metric": LanguageTask.metric})
    return best


def _pad(pairs: Sequence[EncodedPair], indices: np.ndarray) -> SentenceBatch:
    chosen = [pairs[i] for i in indices]
    longest = max(len(syllables) for syllables, _ in chosen)
    syllables = np.full((len(chosen), longest), PAD_ID, np.int32)
    targets = np.full((len(chosen), longest), PAD_ID, np.int32)
    for row, (source, target) in enumerate(chosen):
        syllables[row, : len(source)] = source
        targets[row, : len(target)] = target
    return SentenceBatch([f"sentence {i + 1}" for i in indices], syllables, targets)
