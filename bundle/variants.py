"""Lists the variants (format, mode, precision) of an export, and refuses those that make no sense.

The mode is whole clips, or a stream with internal or external state. Some combinations don't work or have no
benefit: these are refused with a reason and an alternative.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from streaming.conversion.modes import Mode
from utils.errors import BundleError


class Format(StrEnum):
    """File formats; each has its own runtime."""

    SAVED_MODEL = "saved_model"
    LITERT = "litert"
    ONNX = "onnx"
    FROZEN_GRAPH = "frozen_graph"


class Precision(StrEnum):
    """Precision of weights and activations: ``dynamic`` is int8 weights, ``int8`` both."""

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
"""Format → Python module of its runtime."""


@dataclass(frozen=True, order=True)
class Variant:
    """An artefact that can be requested.

    Attributes:
        format: format of the file.
        state: mode: whole clips, or a stream with internal or external state.
        precision: precision of weights and activations.
    """

    format: Format
    state: Mode
    precision: Precision

    def __str__(self) -> str:
        return f"{self.format} {self.state} {self.precision}"

    @property
    def path(self) -> str:
        """Path in a bundle: ``litert/stream_external_int8.tflite``."""
        return f"{self.format}/{self.state}_{self.precision}{SUFFIXES[self.format]}"

    @property
    def runtime(self) -> str:
        """Python module of its runtime."""
        return RUNTIMES[self.format]

    @property
    def is_streaming(self) -> bool:
        """Whether it processes a stream, chunk by chunk."""
        return self.state.is_streaming


@dataclass(frozen=True)
class Refusal:
    """Why a variant isn't offered, and the alternative."""

    reason: str
    instead: str

    def __str__(self) -> str:
        return f"{self.reason}; use {self.instead}"


class UnavailableError(BundleError):
    """A converter can't make an artefact of this model, because of the model's design."""


_IN_TENSORFLOW = Refusal(
    "TensorFlow computes in float32: smaller weights would be converted before each call and save nothing",
    "litert or onnx in this precision",
)
_FROZEN_STATE = Refusal(
    "freezing turns the state into constants: every call would start a new stream",
    "frozen_graph stream_external, or saved_model stream_internal",
)
_DROPPED_STATE = Refusal(
    "ONNX has no variables: the conversion silently drops all updates of the state (outputs differ by 16)",
    "onnx stream_external",
)
_SHOWN_OBSTACLES = 4  # in a refusal
_RAW_IN_INT8 = Refusal(
    "the input is samples: power spectra span nine decades, which 256 steps can't represent (the errors of "
    "the features are as large as the features)",
    "this precision from a model that takes features, or precision dynamic",
)


def refusal(variant: Variant, raw: bool = False) -> Refusal | None:
    """Why ``variant`` isn't offered; None if it is.

    Args:
        variant: the requested variant.
        raw: whether the input of the model is samples, its first layers being the front end.
    """
    tensorflow = variant.format in (Format.SAVED_MODEL, Format.FROZEN_GRAPH)
    if variant.state is Mode.STREAM_INTERNAL_STATE_INFERENCE and variant.format is Format.FROZEN_GRAPH:
        return _FROZEN_STATE
    if variant.state is Mode.STREAM_INTERNAL_STATE_INFERENCE and variant.format is Format.ONNX:
        return _DROPPED_STATE
    if tensorflow and variant.precision is not Precision.FLOAT:
        return _IN_TENSORFLOW
    if raw and variant.precision is Precision.INT8:
        return _RAW_IN_INT8
    return None


def no_stream(obstacles: Sequence[str], kind: str) -> Refusal:
    """Why a model can't be exported as a stream, and the alternative."""
    shown = "; ".join([*obstacles[:_SHOWN_OBSTACLES], *["…"] * (len(obstacles) > _SHOWN_OBSTACLES)])
    reason = "can't stream" if kind == "keyword" else "needs whole utterances"
    streaming = ", or a run of configs/speech/compact_streaming.yaml" if kind == "speech" else ""
    return Refusal(f"the model {reason} ({shown})", f"non_stream{streaming}")


def offered() -> list[Variant]:
    """Every variant that some model can have, in the order of the formats."""
    variants = [Variant(f, s, p) for f in Format for s in Mode for p in Precision]
    return [variant for variant in variants if refusal(variant) is None]
