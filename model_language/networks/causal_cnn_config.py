"""Settings of the causal gated CNN; a module without Keras, so that trained models load without it."""

from dataclasses import dataclass, field

from utils.errors import require
from utils.limits import Count, Fraction, Limited

NAME = "causal_cnn"


@dataclass(frozen=True)
class TextRowsConfig(Limited, section="model.rows"):
    """Training rows: pieces of the text.

    Attributes:
        steps: batches in an epoch; the text is repeated as often as necessary.
        shares: fraction of the rows of each batch that come from each text of ``data.train``; empty: the
            texts are joined, so that each one counts by its size.
        joined: fraction of the line ends that are dropped, so that clauses follow each other.
        negatives: hanzi that a batch draws for the sampled softmax, for each row.
    """

    steps: Count = 1000
    shares: tuple[Fraction, ...] = ()
    joined: Fraction = 0.4
    negatives: Count = 16

    def __post_init__(self):
        super().__post_init__()
        require(
            not self.shares or abs(sum(self.shares) - 1) < 1e-6,
            f"model.rows.shares={list(self.shares)} add up to {sum(self.shares):g}",
            hint="their sum is 1, such as [0.7,0.3]",
        )


@dataclass(frozen=True)
class CausalCnnConfig(Limited, section="model"):
    """Geometry of :func:`model_language.networks.causal_cnn.build_causal_cnn`, and its training rows.

    Attributes:
        width: size of the vectors of the hanzi and of every layer's output.
        dilations: distance between the positions that each layer reads.
        rows: the training rows.
    """

    name: str = NAME
    width: Count = 256
    dilations: tuple[Count, ...] = (1, 1, 2, 4, 8)
    rows: TextRowsConfig = field(default_factory=TextRowsConfig)
