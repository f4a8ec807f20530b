"""Writes the attention weights of a language model for one sentence as an HTML page of heat maps.

The page is one file without network access, in which single heads and positions can be examined.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis.page.rendering import page_environment
from utils.files import write_text

COLOURS = ("#ffffff", "#99d5cf", "#0f766e", "#042f2e")  # of each map, from 0 to its largest weight
_STEPS = 65535  # the page contains weights as 16-bit fractions


@dataclass(frozen=True)
class AttentionMaps:
    """The attention weights of one sentence of L syllables.

    Attributes:
        title: title of the page, such as the name of the run.
        syllables: the L syllables of the sentence.
        hanzi: output of the model, one hanzi per syllable.
        weights: (blocks, heads, L, L) float32; row i has the attention of position i to all positions.
    """

    title: str
    syllables: Sequence[str]
    hanzi: str
    weights: np.ndarray


def write_attention_page(maps: AttentionMaps, path: str | Path) -> None:
    """Write the HTML page.

    Raises:
        OSError: the file cannot be written.
    """
    blocks, heads, length, _ = maps.weights.shape
    fractions = np.round(np.clip(maps.weights, 0, 1) * _STEPS).astype("<u2")
    data = {
        "syllables": list(maps.syllables),
        "hanzi": list(maps.hanzi),
        "blocks": blocks,
        "heads": heads,
        "length": length,
        "colours": COLOURS,
        "weights": base64.b64encode(fractions.tobytes()).decode("ascii"),
    }
    page = page_environment().get_template("attention.html.j2")
    write_text(path, page.render(title=maps.title, blocks=blocks, heads=heads, data=data))
