"""Settings of the converter that comes with this project."""

from dataclasses import dataclass

from utils.errors import ConfigError
from utils.limits import Count, Limited, Size

NAME = "combined"


@dataclass(frozen=True)
class CombinedConfig(Limited, section="model"):
    """Parts of the converter, their weights, and the width of its search.

    Attributes:
        network_run: run folder of the gated CNN, whose vocabularies and texts are used too.
        order: length of the longest n-grams.
        ngrams: number of n-grams of two hanzi and more to keep.
        dictionary: words drawn from a dictionary and added to the text; 0: none.
        names: text file with a name a line, such as titles of an encyclopaedia: those of 2 to 4 hanzi are
            words too; empty: none.
        error_rates: assumed fractions of misrecognised syllables, descending.
        others: number of candidates of each syllable, beyond the network's, that are searched too.
        network, ngram, words, emissions: factors of the four log-probabilities (see
            :mod:`model_language.converters.combined`); with words 0 no model of words is made or loaded.
        beam: hypotheses kept after each syllable.
        choices: candidates of each syllable that are searched, the most promising ones.
    """

    name: str = NAME
    network_run: str = ""
    order: int = 4
    ngrams: Size = 7_500_000
    dictionary: Size = 2_000_000
    names: str = ""
    error_rates: tuple[float, ...] = (0.1, 0.005)
    others: Size = 64
    network: float = 0.2
    ngram: float = 1.0
    words: float = 0.0
    emissions: float = 1.0
    beam: Count = 16
    choices: Count = 8

    def __post_init__(self):
        super().__post_init__()
        rates = self.error_rates
        if not rates or list(rates) != sorted(set(rates), reverse=True) or not 0 < rates[-1] <= rates[0] < 1:
            raise ConfigError(
                f"model.error_rates={list(rates)} are not descending fractions between 1 and 0",
                hint="such as [0.1,0.005], or a single one",
            )
