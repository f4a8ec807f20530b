"""A bundle on any machine in; what its proof says there, artefact by artefact, out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from bundle.check.measuring import TOLERANCE, measure, runtime_version, verdict
from bundle.folder import ANSWERS, Bundle, open_bundle
from bundle.variants import Format, Precision, State, Variant
from utils.errors import BundleError
from utils.files import read_arrays

_ROUNDING = 0.03
"""Of the largest logit: what the kernels of two machines may make of one 8 bit model."""


class Outcome(StrEnum):
    """Of one artefact's proof."""

    PASSED = "passed"
    FAILED = "FAILED"
    NOT_RUN = "NOT RUN"


@dataclass(frozen=True)
class Checked:
    """One artefact's proof on this machine.

    Attributes:
        artefact: its path in the bundle.
        outcome: passed, failed, or not run: its runtime isn't installed.
        why: it failed or wasn't run; for one that passed the difference and the time of a call.
    """

    artefact: str
    outcome: Outcome
    why: str


def verify_bundle(path: str | Path) -> Iterator[Checked]:
    """Check all files, then run every artefact on the golden clips in a process of its own.

    Raises:
        BundleError: a part is missing, changed or doesn't belong; it is named.
    """
    bundle = open_bundle(path)
    bundle.check()
    recorded = read_arrays(bundle.path / ANSWERS)
    for name, facts in bundle.artefacts.items():
        yield _checked(bundle, name, facts, recorded)


def _checked(
    bundle: Bundle, name: str, facts: Mapping[str, Any], recorded: Mapping[str, np.ndarray]
) -> Checked:
    variant = Variant(Format(facts["format"]), State(facts["state"]), Precision(facts["precision"]))
    if runtime_version(variant) is None:
        return Checked(name, Outcome.NOT_RUN, f"{variant.runtime} isn't installed here")
    try:
        found, answers = measure(bundle.path, variant, None)
    except BundleError as error:
        return Checked(name, Outcome.FAILED, error.what)
    problems = verdict(variant, found, None)
    for how, values in answers.items():
        before = recorded.get(f"{name}:{how}")
        if before is None or before.shape != values.shape:
            problems.append(f"the export recorded no such answers ({how})")
            continue
        allowed = TOLERANCE.get(variant.precision, _ROUNDING) * max(1.0, found["largest"])
        difference = float(np.abs(values - before).max())
        if not difference <= allowed:
            problems.append(f"answers differ from those at the export by {difference:.2g} ({how})")
    if not facts["passed"]:
        problems.append("it failed at the export already: see export.md")
    if problems:
        return Checked(name, Outcome.FAILED, "; ".join(problems))
    largest = max(found["difference"].values())
    return Checked(name, Outcome.PASSED, f"difference {largest:.1e}, {found['latency_us']:.0f} µs a call")
