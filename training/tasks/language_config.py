"""The recipe of a pinyin → hanzi model: YAML and overrides in; checked settings of its training out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from model_language.registry import MODELS
from training.initialise import check_initialise
from training.loop import TrainingConfig
from training.optimiser import OptimiserConfig
from utils.config import check_at_least
from utils.errors import ConfigError


@dataclass(frozen=True)
class LanguageDataConfig:
    """Where the pairs of pinyin and hanzi come from, and how they become batches.

    Attributes:
        train: manifests, transcript lists or plain text files to learn from; a context network learns from
            text files only.
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
        check_at_least(self, "data", batch_syllables=1, batch_sentences=1, limit=0)


@dataclass(frozen=True)
class LanguageConfig:
    """A recipe of a pinyin → hanzi model.

    Attributes:
        initialise_from: language run whose weights the model starts from, tokens by name; empty: none. It is
            read at the first start only.
        initialise_except: patterns of layers that don't; they keep their initial values.
        freeze: patterns of layers that training leaves as they are.
        model: the config class of the named model.
    """

    task: str = "language"
    seed: int = 0
    initialise_from: str = ""
    initialise_except: tuple[str, ...] = ()
    freeze: tuple[str, ...] = ()
    data: LanguageDataConfig = field(default_factory=LanguageDataConfig)
    model: Any = None
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def __post_init__(self):
        check_initialise(self.initialise_from, self.initialise_except)
        counted = self.model is not None and MODELS[self.model.name].build is None
        if counted and (self.initialise_from or self.freeze):
            what = f"model.name={self.model.name} is estimated by counting"
            raise ConfigError(what, hint="initialise_from and freeze are for networks: leave them out")


VARIANTS = {"model": {name: entry.config for name, entry in MODELS.items()}}
