"""The recipe (YAML config) of a pinyin → hanzi model: its settings as checked data classes."""

from dataclasses import dataclass, field

from data.text.pinyin_pairs import MANIFEST_ENDINGS
from model_language.registry import MODELS
from training.tasks.recipe import Recipe
from utils.errors import require
from utils.limits import Count, Limited, Size


@dataclass(frozen=True)
class LanguageDataConfig(Limited, section="data"):
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
    batch_syllables: Count = 4_000
    batch_sentences: Count = 256
    limit: Size = 0


@dataclass(frozen=True)
class LanguageConfig(Recipe):
    """A recipe of a pinyin → hanzi model; ``initialise_from`` takes the weights of tokens by name."""

    task: str = "language"
    data: LanguageDataConfig = field(default_factory=LanguageDataConfig)

    def __post_init__(self):
        super().__post_init__()
        if self.model is not None:
            require(
                MODELS[self.model.name].build or not (self.initialise_from or self.freeze),
                f"model.name={self.model.name} is estimated by counting",
                hint="initialise_from and freeze are for networks: leave them out",
            )


VARIANTS = {"model": {name: entry.config for name, entry in MODELS.items()}}


def check_text_rows(config: LanguageConfig) -> None:
    """Check the settings of a network that is trained on rows of text.

    Raises:
        ConfigError: one of them is wrong for such a network.
    """
    data, name = config.data, config.model.name
    require(
        not data.limit,
        f"data.limit cannot be used with model.name={name}",
        hint="leave it out and set training.epochs",
    )
    lists = [source for source in data.train if source.endswith(MANIFEST_ENDINGS)]
    require(
        not lists,
        f"model.name={name} is trained on texts, not on lists: {', '.join(lists)}",
        hint="give .txt or .txt.xz files with one clause per line",
    )
    require(
        data.batch_syllables >= data.batch_sentences,
        f"data.batch_syllables={data.batch_syllables} is too small for {data.batch_sentences} rows",
        hint="a row has data.batch_syllables / data.batch_sentences syllables",
    )
