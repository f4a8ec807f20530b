"""Measures an artefact in a separate process and judges whether it passes; checks all of a bundle again.

float and float16 must reproduce the source model's logits, dynamic and int8 keep its accuracy.
"""

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from bundle.folder import Bundle, open_bundle
from bundle.variants import Format, Precision, Variant
from streaming.conversion.modes import Mode
from utils.errors import BundleError

TOLERANCE = {Precision.FLOAT: 1e-4, Precision.FLOAT16: 1e-2}
"""Allowed difference of a logit, times the largest logit (at least 1): see :func:`verdict`."""
POINT = 0.01
"""Allowed loss of accuracy in 8 bits, as a fraction of the labels; one label or token if that is more."""
_ROOT = Path(__file__).parents[2]


def runtime_version(variant: Variant) -> str | None:
    """``ai-edge-litert 2.3.0``; None if the runtime isn't installed."""
    if importlib.util.find_spec(variant.runtime) is None:
        return None
    name = variant.runtime.replace("_", "-")  # of its package
    try:
        return f"{name} {importlib.metadata.version(name)}"
    except importlib.metadata.PackageNotFoundError:
        return name  # without package metadata, built from source


def measure(bundle: Path, variant: Variant, tests: Path | None) -> dict[str, Any]:
    """Run `bundle.check.measure_artefact` on one artefact in a separate process, on one thread.

    Args:
        bundle: the folder.
        variant: the artefact.
        tests: .npz file with test clips, for the accuracy; None: not measured.

    Returns:
        The measurements (see `measure_artefact`).

    Raises:
        BundleError: the artefact can't be run; the message quotes the error of its process.
    """
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [sys.executable, "-m", "bundle.check.measure_artefact", str(bundle.absolute())]
        command += [variant.path, "--result", str(result), *(["--tests", str(tests)] if tests else [])]
        own = os.environ.get("PYTHONPATH")
        settings = os.environ | {
            "PYTHONPATH": f"{_ROOT}{os.pathsep}{own}" if own else str(_ROOT),
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "CUDA_VISIBLE_DEVICES": "",
        }
        settings |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        ended = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, check=False)
        if ended.returncode or not result.is_file():
            lines = ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"]
            reason = next((line for line in lines if line.startswith("error: ")), lines[-1])
            raise BundleError(f"the artefact can't be run ({reason[:500]})", where=variant.path)
        return json.loads(result.read_text(encoding="utf-8"))


def verdict(
    variant: Variant,
    measured: Mapping[str, Any],
    source_accuracy: Mapping[str, float] | None,
) -> list[str]:
    """Problems of an artefact; empty if it passes.

    float and float16 must keep the source model's logits; ``dynamic`` and ``int8`` must keep its accuracy,
    because the rounding of a logit says little about the result.

    Args:
        variant: the artefact.
        measured: measurements from :func:`measure`.
        source_accuracy: accuracy of the source model by mode, if it was measured.
    """
    problems = []
    if variant.precision in TOLERANCE:
        allowed = TOLERANCE[variant.precision] * max(1.0, measured["largest"])
        for name, difference in measured["difference"].items():
            if not difference <= allowed:  # NaN fails too
                problems.append(
                    f"differs from the source model by {difference:.2g} ({name}), allowed {allowed:.2g}"
                )
    elif source_accuracy and "accuracy" in measured:
        allowed = allowed_loss(measured["labels"])
        for name, accuracy in measured["accuracy"].items():
            if source_accuracy[name] - accuracy > allowed:
                loss = 100 * (source_accuracy[name] - accuracy)
                problems.append(f"{name} accuracy is {loss:.1f} points below the source model's, allowed 1")
    elif not np.isfinite(measured["agreement"]) or measured["agreement"] < _MIN_AGREEMENT:
        problems.append(f"only {measured['agreement']:.0%} of the golden clips get the source model's label")
    return problems


def allowed_loss(labels: int) -> float:
    """Allowed loss of accuracy in 8 bits on this many labels or tokens: a point, or one of them."""
    return max(POINT, 1 / labels) + 1e-9


_MIN_AGREEMENT = 0.8  # without test clips: a broken artefact agrees only by chance


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
