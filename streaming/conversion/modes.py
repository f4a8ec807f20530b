"""The four ways in which one trained model can be run: named here, made in `convert.py`."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """What a model takes and keeps.

    Attributes:
        TRAINING: the model as it was built and trained; whole clips, any batch.
        NON_STREAM_INFERENCE: whole clips ``(batch, frames, …)``; the trained model without dropout.
        STREAM_INTERNAL_STATE_INFERENCE: a chunk ``(1, frames, …)`` a call; the model keeps the past.
        STREAM_EXTERNAL_STATE_INFERENCE: a chunk and the states a call → the output and the next states; the
            caller hands the states on, the model remembers nothing.
    """

    TRAINING = "training"
    NON_STREAM_INFERENCE = "non_stream"
    STREAM_INTERNAL_STATE_INFERENCE = "stream_internal"
    STREAM_EXTERNAL_STATE_INFERENCE = "stream_external"

    @property
    def streams(self) -> bool:
        """Whether the model takes a recording chunk by chunk."""
        return self in (Mode.STREAM_INTERNAL_STATE_INFERENCE, Mode.STREAM_EXTERNAL_STATE_INFERENCE)
