"""Runs a packed causal acoustic model with ONNX Runtime, on whole utterances and on streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from model_speech.causal_timing import CausalTiming
from model_speech.packed_run import FEATURES, LOGITS, NEXT_SUFFIX, STATE_PREFIX
from utils.arrays import pad_rows

if TYPE_CHECKING:
    import onnxruntime


@dataclass(frozen=True, eq=False)
class OnnxStreaming(CausalTiming):
    """A packed acoustic model that also runs on streams. All streams share its network.

    Attributes:
        session: the network, of chunks and states.
    """

    chunks_at_once: ClassVar[int] = 16
    session: onnxruntime.InferenceSession

    def stream(self) -> OnnxStream:
        """A new stream."""
        return OnnxStream(self.session)

    def logits(self, features: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """B feature arrays (frames, bins) → logits (B, T', classes) and lengths (B,) int32."""
        rows = [self._utterance(frames) for frames in features]
        lengths = np.array([len(row) for row in rows], np.int32)
        return pad_rows(rows, dtype=np.float32, inner=(len(self.vocabulary),)), lengths

    def _utterance(self, frames: np.ndarray) -> np.ndarray:
        """(T, F) → (ceil(T / time_stride), classes)."""
        end = -len(frames) % self.time_stride + self.look_ahead
        padded = np.pad(np.asarray(frames, np.float32), ((0, end), (0, 0)))
        return self.stream().step(padded[None])[0, self.delay :]


class OnnxStream:
    """The state of a stream; a `StreamedModel` of :mod:`streaming.chunks`.

    Args:
        session: the network.
    """

    def __init__(self, session: onnxruntime.InferenceSession):
        self._session = session
        self._shapes = {
            given.name: given.shape for given in session.get_inputs() if given.name.startswith(STATE_PREFIX)
        }
        self._outputs = [LOGITS, *(name + NEXT_SUFFIX for name in self._shapes)]
        self.reset()

    def reset(self) -> None:
        """Start a new stream."""
        self._states = {name: np.zeros(shape, np.float32) for name, shape in self._shapes.items()}

    def step(self, chunk: np.ndarray) -> np.ndarray:
        """Process the next chunk (1, n, F), n a multiple of the time stride → (1, n / stride, C) float32."""
        inputs = {FEATURES: np.asarray(chunk, np.float32), **self._states}
        logits, *states = self._session.run(self._outputs, inputs)
        self._states = dict(zip(self._shapes, states, strict=True))
        return logits
