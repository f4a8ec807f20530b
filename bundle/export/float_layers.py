"""An int8 artefact asked for in; the artefact, and the layers that it keeps in float, out.

The layers are chosen on development clips, so that the test clips judge an artefact that they had no part in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bundle.check.measuring import allowed_loss, measure, verdict
from bundle.export.workshop import Workshop
from bundle.variants import Variant

SHARES = (1 / 8, 1 / 4, 1 / 2, 1)
"""Of the tensors between layers: what attempts after the first keep in float. Each attempt is a conversion
and a measurement, of minutes for a speech model; so there are at most five of them."""


def write_int8(workshop: Workshop, variant: Variant, folder: Path, development: Path) -> tuple[str, ...]:
    """Write an int8 artefact with as few layers in float as its accuracy needs.

    Args:
        workshop: makes the artefact.
        variant: which; its precision is int8.
        folder: the bundle's.
        development: .npz with the clips to choose on (`ExportSource.development_clips`).

    Returns:
        Names of the layers left in float; empty: all layers are in 8 bits. Where no attempt keeps the
        accuracy, the names of the last one.

    Raises:
        BundleError: the artefact can't be made, or can't be run.
    """
    before = workshop.development_errors(variant.streams)
    for names in _attempts(workshop):
        workshop.write(variant, folder / variant.path, names)
        found, _ = measure(folder, variant, development if before else None)
        if _keeps_labels(variant, found, before):
            break
    return names


def _keeps_labels(variant: Variant, found: Mapping[str, Any], before: Mapping[str, np.ndarray]) -> bool:
    """Whether at most a point of the labels is lost, whatever clips that were wrong before have gained.

    Which ones gain is chance, and on other clips they may be none. Where nothing is said in the clips, the
    labels of the golden clips are compared.
    """
    if not before:
        return not verdict(variant, found, None)
    errors = {name: np.array(values) for name, values in found["errors"].items()}
    lost = max(np.maximum(errors[name] - before[name], 0).sum() for name in errors)
    return lost / found["labels"] <= allowed_loss(found["labels"])


def _attempts(workshop: Workshop) -> Iterator[tuple[str, ...]]:
    """Names of the layers to keep in float: none, then those around a growing share of the tensors."""
    yield ()
    groups = workshop.noisiest_layers
    for count in sorted({math.ceil(share * len(groups)) for share in SHARES} - {0}):
        yield tuple(dict.fromkeys(name for group in groups[:count] for name in group))
