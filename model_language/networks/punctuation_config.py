"""The settings of the punctuation network, readable without Keras."""

from dataclasses import dataclass

from utils.limits import Count, Fraction, Limited

NAME = "punctuation"


@dataclass(frozen=True)
class PunctuationConfig(Limited, section="model"):
    """Geometry of :func:`model_language.networks.punctuation.build_punctuation`, and its training.

    Attributes:
        width: size of the vectors of the hanzi and of every layer's output.
        dilations: distance of the neighbours on both sides in each layer.
        history: the same of the layers that see the hanzi before only.
        dropout: fraction of the values of the hanzi's vectors that training sets to 0.
        steps: batches in an epoch.
    """

    name: str = NAME
    width: Count = 128
    dilations: tuple[Count, ...] = (1, 1, 2, 4)
    history: tuple[Count, ...] = (4, 8, 16)
    dropout: Fraction = 0.1
    steps: Count = 1000
