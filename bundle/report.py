"""What was measured of each artefact in; the table of an export, and an accuracy file each, out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bundle.check.measuring import POINT, TOLERANCE
from bundle.variants import Precision, Variant, matrix_text, offered

HEADER = (
    "artefact", "passed", "largest difference", "same label", "accuracy", "reset1", "reset0",
    "kB", "operations", "µs a call", "real-time factor", "runtime",
)  # fmt: skip


@dataclass(frozen=True)
class Made:
    """One artefact: what was measured of it, or why it wasn't made.

    Attributes:
        variant: which.
        found: measurements; empty if it wasn't made.
        problems: why it fails; empty: it passes.
    """

    variant: Variant
    found: Mapping[str, Any]
    problems: Sequence[str]


def report_text(about: Mapping[str, Any], made: Sequence[Made], raw: bool) -> str:
    """The contents of ``export.md``.

    Args:
        about: of the source: name, parameters, accuracy, cost.
        made: the artefacts.
        raw: whether the model takes samples.
    """
    asked = {one.variant for one in made}
    missing = [str(variant) for variant in offered(raw) if variant not in asked]
    lines = [f"# Export of {about['model']}", "", *_about(about), "", *_table(about, made), "", _LEGEND]
    lines += [*_float_layers(made), *_shifts(about), "", "## What is offered", "", matrix_text()]
    if missing:
        lines += [f"Not asked for here: {', '.join(missing)}.", ""]
    return "\n".join(lines)


def report_json(about: Mapping[str, Any], made: Sequence[Made]) -> dict[str, Any]:
    """The contents of ``export.json``."""
    artefacts = {
        one.variant.path: {"passed": not one.problems, "problems": list(one.problems), **one.found}
        for one in made
    }
    return {**about, "artefacts": artefacts}


ERROR_RATES = {"speech": "syllable error rate", "language": "character error rate"}
"""What one minus the accuracy is called, by the kind of model."""


def accuracy_text(one: Made, kind: str) -> str:
    """The accuracy file beside an artefact: a line a way of measuring, and of tokens the error rate."""
    accuracy, clips = one.found.get("accuracy"), one.found.get("clips")
    if not accuracy:
        return "not measured: there was no test set\n"
    lines = [f"{name} {100 * value:.2f} % (N = {clips})\n" for name, value in accuracy.items()]
    if measure := ERROR_RATES.get(kind):
        lines += [f"{measure} {name} {100 * (1 - value):.2f} %\n" for name, value in accuracy.items()]
    return "".join(lines)


def _about(about: Mapping[str, Any]) -> list[str]:
    lines = [f"- {about['parameters']:,} parameters"]
    for state, count in about["multiply_accumulates"].items():
        lines.append(
            f"- {state}: {f'{count:,}' if count is not None else 'unknown'} multiply-accumulates a call"
        )
    if about["accuracy"]:
        shown = ", ".join(f"{name} {100 * value:.2f} %" for name, value in about["accuracy"].items())
        lines.append(f"- the source model's accuracy on {about['test_clips']} test clips: {shown}")
    else:
        lines.append("- accuracy not measured: the test recordings aren't where the run's config.yaml says")
    if about["stream"]:
        lines.append(f"- a stream's call takes {1000 * about['stream']['seconds']:g} ms of sound")
    return lines


def _float_layers(made: Sequence[Made]) -> list[str]:
    """Which layers int8 artefacts keep in float, a line an artefact."""
    lines = [
        f"- {one.variant}: {', '.join(names)}" for one in made if (names := one.found.get("float_layers"))
    ]
    if not lines:
        return []
    text = (
        f"With these layers in 8 bits the artefact lost more than {_POINT} of the labels on the dev clips "
        "(on the calibration clips where there is no dev split beside the test split). Inputs, states and "
        "outputs are then float as well."
    )
    return ["", "## Layers of int8 artefacts that stay in float", "", text, "", *lines]


def _shifts(about: Mapping[str, Any]) -> list[str]:
    """Accuracy of whole clips that are moved in time."""
    if not about["accuracy_by_shift"]:
        return []
    text = (
        "The source model and the float artefacts of whole clips, with each test clip earlier (negative) or "
        "later and zeros where nothing is left."
    )
    rows = [f"| {ms:+d} | {100 * accuracy:.2f} % |" for ms, accuracy in about["accuracy_by_shift"].items()]
    table = ["| shift in ms | accuracy |", "| ---: | ---: |", *rows]
    return ["", "## Accuracy under a time shift", "", text, "", *table]


def _table(about: Mapping[str, Any], made: Sequence[Made]) -> list[str]:
    rows = [_row(one, about) for one in made]
    ruler = "| --- | --- |" + " ---: |" * (len(HEADER) - 3) + " --- |"
    return ["| " + " | ".join(HEADER) + " |", ruler, *("| " + " | ".join(row) + " |" for row in rows)]


def _row(one: Made, about: Mapping[str, Any]) -> list[str]:
    found, passed = one.found, "yes" if not one.problems else "**no**: " + "; ".join(one.problems)
    if not found:
        return [str(one.variant), passed, *[""] * (len(HEADER) - 2)]
    accuracy = found.get("accuracy", {})
    shares = [f"{100 * accuracy[name]:.2f} %" if name in accuracy else "" for name in _ACCURACIES]
    seconds = _call_seconds(one, about)
    factor = f"{found['latency_us'] / 1e6 / seconds:.4f}" if seconds else ""
    largest = max(found["difference"].values())
    cells = [str(one.variant), passed, f"{largest:.1e}", f"{100 * found['agreement']:.0f} %", *shares]
    cells += [f"{found['bytes'] / 1000:.1f}", str(found["operations"]), f"{found['latency_us']:.0f}", factor]
    return [*cells, found["runtime"] or ""]


def _call_seconds(one: Made, about: Mapping[str, Any]) -> float:
    """Sound in a call; 0 where a call is a clip of the keyword's length, or text."""
    if one.variant.streams:
        return about["stream"]["seconds"]
    return one.found["call_positions"] * about["frame_seconds"] if about["row_stride"] else 0.0


_ACCURACIES = ("non_stream", "reset1", "reset0")


_POINT = f"{100 * POINT:g} point"
_FLOAT, _FLOAT16 = (f"{TOLERANCE[one]:g} ({one})" for one in (Precision.FLOAT, Precision.FLOAT16))
_LEGEND = f"""\
Each artefact was opened in a fresh process by its own runtime, on one thread, and heard the golden clips:
whole, or chunk by chunk with the state reset before each clip, then all of them as one stream. Passed: a
difference to the source model's logits of at most {_FLOAT} or {_FLOAT16}, times the largest
logit if that is above 1; dynamic and int8: at most {_POINT} of accuracy lost on the test clips. reset1:
streamed, the state reset before each clip; reset0: never reset. A call is a whole clip or utterance, or one
chunk of a stream; the time is the median, with what Python adds. Models of whole utterances were compared on
utterances in one padded batch, one by one without padding, and with more padding."""
