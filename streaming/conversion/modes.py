"""The three modes in which a trained model can run; ``convert`` builds them."""

from enum import StrEnum


class Mode(StrEnum):
    """Input and state of a model.

    Attributes:
        NON_STREAM_INFERENCE: whole clips ``(batch, frames, …)``; the trained model without dropout.
        STREAM_INTERNAL_STATE_INFERENCE: a chunk ``(1, frames, …)`` per call; the model keeps its state.
        STREAM_EXTERNAL_STATE_INFERENCE: a chunk and the states → the output and the next states; the caller
            keeps the states.
    """

    NON_STREAM_INFERENCE = "non_stream"
    STREAM_INTERNAL_STATE_INFERENCE = "stream_internal"
    STREAM_EXTERNAL_STATE_INFERENCE = "stream_external"

    @property
    def is_streaming(self) -> bool:
        """Whether the model processes a recording chunk by chunk."""
        return self is not Mode.NON_STREAM_INFERENCE
