"""Composes the report of an export from the measurements of its artefacts: ``export.md``, ``export.json``.

``bundle/export/build.py`` writes them, and for each artefact a text file with its accuracy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bundle.check.measuring import POINT, TOLERANCE
from bundle.variants import Precision, Variant
from utils.text_table import markdown_table

HEADER = (
    "artefact", "passed", "largest difference", "same label", "accuracy", "reset1", "reset0",
    "kB", "operations", "µs per call", "real-time factor", "runtime",
)  # fmt: skip


@dataclass(frozen=True)
class ArtefactResult:
    """The result of exporting one artefact.

    Attributes:
        variant: format, mode and precision of the artefact.
        measured: measurements; only its size if it couldn't be run; empty if it couldn't be written.
        problems: why it failed; empty if it passed.
        unavailable: why the model can't have this artefact, because of its design; empty if it can.
    """

    variant: Variant
    measured: Mapping[str, Any]
    problems: Sequence[str]
    unavailable: str = ""


def report_text(about: Mapping[str, Any], results: Sequence[ArtefactResult]) -> str:
    """The contents of ``export.md``.

    Args:
        about: properties of the source model: name, parameters, accuracy, cost.
        results: results of the artefacts.
    """
    lines = [
        f"# Export of {about['model']}",
        "",
        *_about(about),
        "",
        markdown_table(HEADER, [_row(result, about) for result in results], left=2),
        _LEGEND,
        *_float_layers(results),
        "",
    ]
    return "\n".join(lines)


def report_json(about: Mapping[str, Any], results: Sequence[ArtefactResult]) -> dict[str, Any]:
    """The contents of ``export.json``."""
    artefacts = {
        result.variant.path: {
            "passed": not result.problems,
            "problems": list(result.problems),
            "available": not result.unavailable,
            **result.measured,
        }
        for result in results
    }
    return {**about, "artefacts": artefacts}


ERROR_RATES = {"speech": "token error rate", "language": "character error rate"}
"""Kind of model → name of one minus the accuracy."""


def accuracy_text(result: ArtefactResult, kind: str) -> str:
    """The accuracy file of an artefact: one line per mode; for tokens also the error rate."""
    accuracy, clips = result.measured.get("accuracy"), result.measured.get("clips")
    if not accuracy:
        return "not measured: there were no test clips, or the artefact can't be run\n"
    lines = [f"{name} {100 * value:.2f} % (N = {clips})\n" for name, value in accuracy.items()]
    if measure := ERROR_RATES.get(kind):
        lines += [f"{measure} {name} {100 * (1 - value):.2f} %\n" for name, value in accuracy.items()]
    return "".join(lines)


def _about(about: Mapping[str, Any]) -> list[str]:
    lines = [f"- {about['parameters']:,} parameters"]
    for state, count in about["multiply_accumulates"].items():
        lines.append(
            f"- {state}: {f'{count:,}' if count is not None else 'unknown'} multiply-accumulates per call"
        )
    if about["accuracy"]:
        shown = ", ".join(f"{name} {100 * value:.2f} %" for name, value in about["accuracy"].items())
        clips = f"{about['test_clips']} {about['test_split']} clips"
        lines.append(f"- the source model's accuracy on {clips}: {shown}")
    else:
        lines.append("- accuracy not measured: there were no test clips (the notes of the export say why)")
    if about["stream"]:
        lines.append(f"- a call of a stream processes {1000 * about['stream']['seconds']:g} ms of audio")
    return lines


def _float_layers(results: Sequence[ArtefactResult]) -> list[str]:
    """The layers that int8 artefacts keep in float, one line per artefact."""
    lines = [
        f"- {result.variant}: {', '.join(names)}"
        for result in results
        if (names := result.measured.get("float_layers"))
    ]
    if not lines:
        return []
    text = (
        f"With these layers in 8 bits more than {_POINT} of the labels differed from the source model's "
        "on the dev clips (on the calibration clips if there is no dev split beside the test split). "
        "Inputs, states and outputs are then float as well."
    )
    return ["", "## Layers of int8 artefacts that stay in float", "", text, "", *lines]


def _row(result: ArtefactResult, about: Mapping[str, Any]) -> list[str]:
    found, passed = result.measured, "; ".join(result.problems) or "yes"
    if result.problems and not result.unavailable:
        passed = f"**no**: {passed}"
    if "difference" not in found:
        return [str(result.variant), passed, *[""] * (len(HEADER) - 2)]
    accuracy = found.get("accuracy", {})
    shares = [f"{100 * accuracy[name]:.2f} %" if name in accuracy else "" for name in _ACCURACIES]
    seconds = _call_seconds(result, about)
    factor = f"{found['latency_us'] / 1e6 / seconds:.4f}" if seconds else ""
    largest = max(found["difference"].values())
    cells = [str(result.variant), passed, f"{largest:.1e}", f"{100 * found['agreement']:.0f} %", *shares]
    cells += [f"{found['bytes'] / 1000:.1f}", str(found["operations"]), f"{found['latency_us']:.0f}", factor]
    return [*cells, found["runtime"] or ""]


def _call_seconds(result: ArtefactResult, about: Mapping[str, Any]) -> float:
    """Seconds of sound per call; 0 for whole keyword clips and for text."""
    if result.variant.is_streaming:
        return about["stream"]["seconds"]
    return result.measured["call_positions"] * about["frame_seconds"] if about["row_stride"] else 0.0


_ACCURACIES = ("non_stream", "reset1", "reset0")


_POINT = f"{100 * POINT:g} point"
_FLOAT, _FLOAT16 = (f"{TOLERANCE[kind]:g} ({kind})" for kind in (Precision.FLOAT, Precision.FLOAT16))
_LEGEND = f"""\
Each artefact was run by its own runtime in a new process, on one thread, on the golden clips: whole, or chunk
by chunk with the state reset before each clip, and then all clips as one stream. Passed: for float and
float16 a difference to the source model's logits of at most {_FLOAT} or {_FLOAT16}, times the largest
logit if that is above 1; for dynamic and int8 a loss of at most {_POINT} of accuracy.
reset1: streamed, with a reset before each clip; reset0: never reset. A call is a whole clip or utterance,
or one chunk of a stream; the time is the median, including Python. Models of whole utterances were
compared on utterances in one padded batch, one by one without padding, and with more padding."""
