"""The three modes in which a trained model can run; ``convert`` builds them."""

from enum import StrEnum


class Mode(StrEnum):
    """Input and state of a model.

    Attributes:
        NON_STREAM: whole clips ``(batch, frames, …)``; the trained model without dropout.
        INTERNAL: a chunk ``(1, frames, …)`` per call; the model keeps its state.
        EXTERNAL: a chunk and the states → the output and the next states; the caller keeps the states.
    """

    NON_STREAM = "non_stream"
    INTERNAL = "stream_internal"
    EXTERNAL = "stream_external"

    @property
    def is_streaming(self) -> bool:
        """Whether the model processes a recording chunk by chunk."""
        return self is not Mode.NON_STREAM
