"""The recipe of a pinyin → hanzi model: YAML and overrides in, checked settings of its training out."""

from dataclasses import dataclass, field
from typing import Any

from model_language.registry import MODELS, OLD_NAMES, model_entry
from training.initialise import check_initialise
from training.loop import TrainingConfig
from training.optimiser import OptimiserConfig
from utils.config import check_at_least
from utils.errors import ConfigError


@dataclass(frozen=True)
class LanguageDataConfig:
    """The pairs of pinyin and hanzi, and their batches.

    Attributes:
        train: manifests, transcript lists or plain text files to train on; a gated CNN is trained on text
            files only.
        dev: the same, to choose the best epoch.
        test: the same, for ``test.py --split test``.
        cache: folder for the pinyin of plain text files.
        batch_syllables: largest number of padded syllables in a batch.
        batch_sentences: largest number of sentences in a batch.
        limit: number of training sentences to use, the first ones; 0 means all.
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
        initialise_from: language run whose weights the model starts from, matched by token; empty: none. It
            is read only at the first start.
        initialise_except: patterns of layers that keep their random initial values.
        freeze: patterns of layers that are not trained.
        model: settings of the named model, an instance of its config class.
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
        counted = self.model is not None and model_entry(self.model.name).build is None
        if counted and (self.initialise_from or self.freeze):
            raise ConfigError(
                f"model.name={self.model.name} is estimated by counting",
                hint="initialise_from and freeze are for networks: leave them out",
            )


VARIANTS = {"model": {name: model_entry(name).config for name in (*MODELS, *OLD_NAMES)}}
