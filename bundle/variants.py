"""What export.py is asked for in; the variants it makes, and why the others are refused, out.

A variant is a file format, a way to keep the state of a stream, and a precision. Not every combination would
work, or would bring anything: each refused one has a reason and says what to take instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Format(StrEnum):
    """File formats; each has a runtime of its own."""

    SAVED_MODEL = "saved_model"
    LITERT = "litert"
    ONNX = "onnx"
    FROZEN_GRAPH = "frozen_graph"


class State(StrEnum):
    """Whether a model takes a clip or a stream, and where a stream's state is kept."""

    NON_STREAM = "non_stream"
    INTERNAL = "stream_internal"
    EXTERNAL = "stream_external"


class Precision(StrEnum):
    """Of weights and arithmetic. ``dynamic``: int8 weights, float activations; ``int8``: both."""

    FLOAT = "float"
    FLOAT16 = "float16"
    DYNAMIC = "dynamic"
    INT8 = "int8"


SUFFIXES = {
    Format.SAVED_MODEL: "",
    Format.LITERT: ".tflite",
    Format.ONNX: ".onnx",
    Format.FROZEN_GRAPH: ".pb",
}
RUNTIMES = {
    Format.SAVED_MODEL: "tensorflow",
    Format.LITERT: "ai_edge_litert",
    Format.ONNX: "onnxruntime",
    Format.FROZEN_GRAPH: "tensorflow",
}
"""The module that runs a format."""


@dataclass(frozen=True, order=True)
class Variant:
    """One artefact that can be asked for.

    Attributes:
        format: of the file.
        state: a clip at a time, or a stream with its state inside or outside.
        precision: of weights and arithmetic.
    """

    format: Format
    state: State
    precision: Precision

    def __str__(self) -> str:
        return f"{self.format} {self.state} {self.precision}"

    @property
    def path(self) -> str:
        """Where it lies in a bundle: ``litert/stream_external_int8.tflite``."""
        return f"{self.format}/{self.state}_{self.precision}{SUFFIXES[self.format]}"

    @property
    def runtime(self) -> str:
        """The module that runs it."""
        return RUNTIMES[self.format]

    @property
    def streams(self) -> bool:
        """Whether it takes a stream, chunk by chunk."""
        return self.state is not State.NON_STREAM


@dataclass(frozen=True)
class Refusal:
    """Why a variant isn't offered, and what to take instead."""

    reason: str
    instead: str


_IN_TENSORFLOW = Refusal(
    "TensorFlow runs it in float32: smaller weights would be turned back before each call and save nothing",
    "litert or onnx in this precision",
)
_FROZEN_STATE = Refusal(
    "freezing turns the state into constants: every call would begin anew",
    "frozen_graph stream_external, or saved_model stream_internal",
)
_DROPPED_STATE = Refusal(
    "ONNX has no variables: the conversion drops all updates of the state, silently (outputs off by 16)",
    "onnx stream_external",
)
_SHOWN_OBSTACLES = 4
_RAW_IN_INT8 = Refusal(
    "the model begins with samples: power spectra span nine decades, which 256 steps can't hold (the "
    "features come out with errors as large as they are themselves)",
    "this precision from a model of mfcc or micro features, or precision dynamic",
)


def refusal(variant: Variant, raw: bool = False) -> Refusal | None:
    """Why ``variant`` isn't made, or nothing if it is.

    Args:
        variant: what is asked for.
        raw: whether the model takes samples, its first layers being the front end.
    """
    tensorflow = variant.format in (Format.SAVED_MODEL, Format.FROZEN_GRAPH)
    if variant.state is State.INTERNAL and variant.format is Format.FROZEN_GRAPH:
        return _FROZEN_STATE
    if variant.state is State.INTERNAL and variant.format is Format.ONNX:
        return _DROPPED_STATE
    if tensorflow and variant.precision is not Precision.FLOAT:
        return _IN_TENSORFLOW
    if raw and variant.precision is Precision.INT8:
        return _RAW_IN_INT8
    return None


def whole_utterances(obstacles: Sequence[str], kind: str) -> Refusal:
    """Why a model of whole utterances has no streams, and what to take instead.

    Args:
        obstacles: what in the model needs an utterance's end.
        kind: ``speech`` or ``language``.
    """
    shown = "; ".join([*obstacles[:_SHOWN_OBSTACLES], *(["…"] if len(obstacles) > _SHOWN_OBSTACLES else [])])
    streaming = ", or a run of model.name=compact_streaming" if kind == "speech" else ""
    return Refusal(f"the model needs whole utterances ({shown})", f"non_stream{streaming}")


def offered(raw: bool = False, streams: bool = True) -> list[Variant]:
    """Every variant that is made of a model, in the order of the formats.

    Args:
        raw: whether the model takes samples.
        streams: whether it can stream at all.
    """
    return [
        variant
        for variant in (Variant(f, s, p) for f in Format for s in State for p in Precision)
        if (streams or not variant.streams) and refusal(variant, raw) is None
    ]


def matrix_text() -> str:
    """The matrix of what is offered, and below it each reason for what isn't, as Markdown."""
    refusals: dict[Refusal, int] = {}
    lines = [
        "| format | state | " + " | ".join(Precision) + " |",
        "| --- | --- |" + " --- |" * len(Precision),
    ]
    for format_ in Format:
        for state in State:
            cells = [_cell(Variant(format_, state, precision), refusals) for precision in Precision]
            lines.append(f"| {format_} | {state} | " + " | ".join(cells) + " |")
    notes = [f"{number}. {one.reason}. Instead: {one.instead}." for one, number in refusals.items()]
    return "\n".join([*lines, "", *notes]) + "\n"


def _cell(variant: Variant, refusals: dict[Refusal, int]) -> str:
    plain, of_samples = refusal(variant), refusal(variant, raw=True)
    found = plain or of_samples
    if found is None:
        return "yes"
    number = refusals.setdefault(found, len(refusals) + 1)
    return f"no ({number})" if plain else f"yes; raw: no ({number})"
