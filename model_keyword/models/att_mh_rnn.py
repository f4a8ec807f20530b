"""Attention with several heads over a recurrent network: frames of features in, logits of the labels out.

Rybakov et al., "Streaming keyword spotting on mobile devices" (2020, arXiv:2005.06720):
`model_keyword.models.att_rnn` with GRUs and four questions instead of one, the best model of the paper. There
it hears the clip from both ends and pads on both sides, and doesn't stream; the default here hears it from
its beginning, and streams. The paper's is ``bidirectional: true`` with ``padding: same``.

743,047 parameters in both directions (the paper's 743 K) for 20 features and 12 labels, 258,183 in one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from model_keyword.layers.time_layers import KeptLength
from model_keyword.models.att_rnn import AttRnnConfig, build_att_rnn


@dataclass(frozen=True)
class AttMhRnnConfig(AttRnnConfig):
    """Geometry of `build_att_mh_rnn`; the fields are those of `model_keyword.models.att_rnn.AttRnnConfig`."""

    name: str = "att_mh_rnn"
    padding: KeptLength = "causal"
    cell: Literal["gru", "lstm"] = "gru"
    recurrent_units: tuple[int, ...] = (128, 128)
    bidirectional: bool = False
    heads: int = 4
    dropout: float = 0.2


def build_att_mh_rnn(config: AttMhRnnConfig, x, labels: int):
    """Build the network.

    Args:
        config: geometry.
        x: features (B, T, F).
        labels: L.

    Returns:
        logits (B, L) float32.
    """
    return build_att_rnn(config, x, labels)
