"""Measures an artefact in a separate process and judges whether it passes.

float and float16 must reproduce the source model's logits, dynamic and int8 keep its accuracy.
"""

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bundle.variants import Precision, Variant
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
