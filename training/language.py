"""Training of a pinyin → hanzi model: text or manifests → pairs → the task that the loop trains."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

from model_language.registry import MODELS

from training.loop import TrainingConfig
from training.optimiser import OptimiserConfig

log = logging.getLogger("train")


@dataclass(frozen=True)
class LanguageDataConfig:
    """Where the pairs of pinyin and hanzi come from, and how they become batches.

    Attributes:
        train: manifests, transcript lists or plain text files to learn from.
        dev: the same, to pick the best epoch.
        test: the same, for ``test.py --split test``.
        batch_syllables: padded syllables in a batch, at most.
        batch_sentences: sentences in a batch, at most.
        limit: only the first so many training sentences; 0 means all.
    """

    train: tuple[str, ...] = ()
    dev: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    batch_syllables: int = 4_000
    batch_sentences: int = 256
    limit: int = 0


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
