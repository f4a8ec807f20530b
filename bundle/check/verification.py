"""Checks every artefact of a bundle again on this machine, each in its own process.

Outputs for the golden clips are compared with the source model's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from bundle.check.measuring import TOLERANCE, measure, runtime_version, verdict
from bundle.folder import Bundle, open_bundle
from bundle.variants import Format, Precision, Variant
from streaming.conversion.modes import Mode
from utils.errors import BundleError


class Outcome(StrEnum):
    """Result of the check of an artefact."""

    PASSED = "passed"
    FAILED = "FAILED"
    NOT_RUN = "NOT RUN"


@dataclass(frozen=True)
class CheckResult:
    """Result of checking an artefact on this machine.

    Attributes:
        artefact: path of the artefact in the bundle.
        outcome: passed, failed, or not run because its runtime isn't installed or lacks operations.
        detail: reason of a failure; if it passed, how its logits differ from the source model's, and the time
            per call.
    """

    artefact: str
    outcome: Outcome
    detail: str


def verify_bundle(path: str | Path) -> Iterator[CheckResult]:
    """Check all files of a bundle, then run every artefact on the golden clips, each in its own process.

    Raises:
        BundleError: a file is missing, damaged or changed; it is named.
    """
    bundle = open_bundle(path)
    bundle.check()
    for name, properties in bundle.artefacts.items():
        yield _check(bundle, name, properties)


def _check(bundle: Bundle, name: str, properties: Mapping[str, Any]) -> CheckResult:
    variant = Variant(
        Format(properties["format"]), Mode(properties["state"]), Precision(properties["precision"])
    )
    if properties["flex"]:
        return CheckResult(name, Outcome.NOT_RUN, "it needs TensorFlow's operations")
    if runtime_version(variant) is None:
        return CheckResult(name, Outcome.NOT_RUN, f"{variant.runtime} isn't installed here")
    try:
        measured = measure(bundle.path, variant, None)
    except BundleError as error:
        return CheckResult(name, Outcome.FAILED, error.message)
    problems = verdict(variant, measured, None)
    if not properties["passed"]:
        problems.append("it failed at the export already: see export.md")
    if problems:
        return CheckResult(name, Outcome.FAILED, "; ".join(problems))
    detail = f"{_agreement(variant, measured)}, {measured['latency_us']:.0f} µs per call"
    return CheckResult(name, Outcome.PASSED, detail)


def _agreement(variant: Variant, measured: Mapping[str, Any]) -> str:
    """What :func:`bundle.check.measuring.verdict` judged: the logits, or in 8 bits the labels."""
    if variant.precision not in TOLERANCE:
        return f"{measured['agreement']:.0%} of the golden clips get the source model's label"
    output, difference = max(measured["difference"].items(), key=lambda item: item[1])
    allowed = TOLERANCE[variant.precision] * max(1.0, measured["largest"])
    return f"logits within {difference:.1e} of the source model's ({output}; allowed {allowed:.1e})"
