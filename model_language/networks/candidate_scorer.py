"""Runs a packed network that scores the candidate hanzi of each syllable, in ONNX Runtime."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from model_language.vocabulary.symbols import PAD_ID
from utils.arrays import log_softmax
from utils.backend.onnx_session import open_session

if TYPE_CHECKING:
    import onnxruntime


class CandidateScorer:
    """The network of a converter; it is opened on first use: the joint search does without it.

    Args:
        path: a file of :func:`bundle.export.packed_network.packed_text_network`.
    """

    def __init__(self, path: Path):
        self._path = path

    @cached_property
    def _session(self) -> onnxruntime.InferenceSession:
        return open_session(self._path)

    def log_probs(self, syllables: np.ndarray) -> np.ndarray:
        """log P(hanzi | all syllables) of each candidate.

        Args:
            syllables: (B, L) int, filled with 0.

        Returns:
            (B, L, K) float32, in the order of the network's candidates; about -1e9 in empty columns, -inf at
            padding.
        """
        logits = self._session.run(None, {"syllables": syllables.astype(np.int32)})[0]
        found = log_softmax(logits)
        found[syllables == PAD_ID] = -np.inf
        return found
