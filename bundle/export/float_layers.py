"""A requested int8 artefact in; the artefact and the layers that it keeps in float out.

The layers are chosen on development clips, so that the test clips measure the artefact independently.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bundle.check.measuring import allowed_loss, measure, verdict
from bundle.export.artefact_writer import ArtefactWriter
from bundle.variants import Variant

FRACTIONS = (1 / 8, 1 / 4, 1 / 2, 1)
"""Fraction of the tensors between layers that each attempt after the first keeps in float. An attempt is a
conversion and a measurement, minutes for a speech model; hence at most five."""


def write_int8(writer: ArtefactWriter, variant: Variant, folder: Path, development: Path) -> tuple[str, ...]:
    """Write an int8 artefact with as few float layers as its accuracy needs.

    Args:
        writer: writes the artefact.
        variant: of precision int8.
        folder: of the bundle.
        development: .npz file with the clips to choose on (`ExportSource.development_clips`).

    Returns:
        Names of the float layers; empty if all layers are in 8 bits. If no attempt keeps the accuracy, those
        of the last attempt.

    Raises:
        BundleError: the artefact can't be written or run.
    """
    before = writer.development_errors(variant.streams)
    for names in _attempts(writer):
        writer.write(variant, folder / variant.path, names)
        measured, _ = measure(folder, variant, development if before else None)
        if _keeps_labels(variant, measured, before):
            break
    return names


def _keeps_labels(variant: Variant, measured: Mapping[str, Any], before: Mapping[str, np.ndarray]) -> bool:
    """Whether at most a point of the labels is lost. Gains on clips that were wrong before don't count.

    Gains are random and may not occur on other clips. If the clips have no references, the labels of the
    golden clips are compared.
    """
    if not before:
        return not verdict(variant, measured, None)
    errors = {name: np.array(values) for name, values in measured["errors"].items()}
    lost = max(np.maximum(errors[name] - before[name], 0).sum() for name in errors)
    return lost / measured["labels"] <= allowed_loss(measured["labels"])


def _attempts(writer: ArtefactWriter) -> Iterator[tuple[str, ...]]:
    """Names of the layers to keep in float: none, then those around a growing fraction of the tensors."""
    yield ()
    groups = writer.noisiest_layers
    for count in sorted({math.ceil(fraction * len(groups)) for fraction in FRACTIONS} - {0}):
        yield tuple(dict.fromkeys(name for group in groups[:count] for name in group))
