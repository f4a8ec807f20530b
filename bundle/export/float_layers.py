"""A requested int8 artefact in; the artefact and the layers that it keeps in float out.

The layers are chosen on development clips, so that the test clips measure the artefact independently.
"""

import math
from collections.abc import Iterator
from pathlib import Path

from bundle.check.measuring import allowed_loss, measure
from bundle.export.artefact_writer import ArtefactWriter
from bundle.variants import Variant

FRACTIONS = (1 / 8, 1 / 4, 1 / 2, 1)
"""Fraction of the tensors between layers that each attempt after the first keeps in float. An attempt is a
conversion and a measurement, minutes for a speech model; hence at most five."""


def write_int8(writer: ArtefactWriter, variant: Variant, folder: Path, development: Path) -> tuple[str, ...]:
    """Write an int8 artefact with as few float layers as it needs to predict what the source model does.

    At most a point of the labels may differ. The references don't matter: where the source model is wrong, 8
    bits may be right by chance, which would hide what they lose elsewhere.

    Args:
        writer: writes the artefact.
        variant: of precision int8.
        folder: of the bundle.
        development: .npz file with the clips to choose on (`ArtefactWriter.development_arrays`).

    Returns:
        Names of the float layers; empty if all layers are in 8 bits. If no attempt keeps the labels, those
        of the last attempt.

    Raises:
        BundleError: the artefact can't be written or run.
    """
    for names in _attempts(writer):
        writer.write(variant, folder / variant.path, names)
        measured, _ = measure(folder, variant, development)
        if min(measured["accuracy"].values()) >= 1 - allowed_loss(measured["labels"]):
            break
    return names


def _attempts(writer: ArtefactWriter) -> Iterator[tuple[str, ...]]:
    """Names of the layers to keep in float: none, then those around a growing fraction of the tensors."""
    yield ()
    groups = writer.noisiest_layers
    for count in sorted({math.ceil(fraction * len(groups)) for fraction in FRACTIONS} - {0}):
        yield tuple(dict.fromkeys(name for group in groups[:count] for name in group))
