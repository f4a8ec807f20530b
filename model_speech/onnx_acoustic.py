"""Runs the acoustic model of a packed speech run with ONNX Runtime: features in, CTC logits out.

Keras is not loaded: loading it takes longer than transcribing a minute of speech. Utterances are computed one
by one, without padding: the range of 8-bit activations is that of a call, so that the logits of an utterance
do not depend on others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from model_speech.onnx_streaming import OnnxStreaming
from model_speech.packed_run import FEATURES, LENGTHS, LOGITS, LOOK_AHEAD, TIME_STRIDE
from utils.arrays import pad_rows
from utils.backend.onnx_session import COPY_AGAIN, open_session
from utils.errors import RunError, require
from utils.features.settings import FeatureConfig, feature_bins
from utils.run_folder.run import open_run
from utils.vocabulary import Vocabulary

if TYPE_CHECKING:
    import onnxruntime


@dataclass(frozen=True, eq=False)
class OnnxAcoustic:
    """A packed acoustic model of whole utterances.

    Attributes:
        features: settings of the features that it was trained on.
        vocabulary: the tokens of its classes, in the order of the logits.
        time_stride: feature frames per logit frame.
        session: the network.
    """

    features: FeatureConfig
    vocabulary: Vocabulary
    time_stride: int
    session: onnxruntime.InferenceSession

    @property
    def frame_seconds(self) -> float:
        """Seconds between two logit frames."""
        return self.time_stride * self.features.hop_seconds

    def logits(self, features: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """B feature arrays (frames, bins) → logits (B, T', classes) and lengths (B,) int32."""
        lengths = np.array([-(-len(frames) // self.time_stride) for frames in features], np.int32)
        rows = [self._utterance(frames)[:length] for frames, length in zip(features, lengths, strict=True)]
        return pad_rows(rows, dtype=np.float32, inner=(len(self.vocabulary),)), lengths

    def _utterance(self, frames: np.ndarray) -> np.ndarray:
        inputs = {
            FEATURES: np.asarray(frames, np.float32)[None],
            LENGTHS: np.array([len(frames)], np.int32),
        }
        return self.session.run([LOGITS], inputs)[0][0]


def load_onnx_acoustic(path: str | Path) -> OnnxAcoustic | OnnxStreaming:
    """Open a packed speech run (see ``bundle.pack``).

    Raises:
        RunError: a file is missing or damaged, or the network doesn't match config.yaml and the vocabulary.
    """
    run = open_run(path, "speech")
    vocabulary = Vocabulary.load(run.part(run.vocabulary("acoustic.txt")))
    features = run.section("features", FeatureConfig)
    session = open_session(run.part(run.packed_network))
    shapes = {tensor.name: tensor.shape for tensor in (*session.get_inputs(), *session.get_outputs())}
    found, expected = (shapes[FEATURES][-1], shapes[LOGITS][-1]), (feature_bins(features), len(vocabulary))
    require(
        found == expected,
        f"the network takes {found[0]} bins and has {found[1]} classes, config.yaml and the vocabulary have "
        f"{expected[0]} and {expected[1]}",
        where=run.path,
        hint=COPY_AGAIN,
        error=RunError,
    )
    metadata = session.get_modelmeta().custom_metadata_map
    time_stride = int(metadata[TIME_STRIDE])
    if LOOK_AHEAD in metadata:
        return OnnxStreaming(features, vocabulary, time_stride, int(metadata[LOOK_AHEAD]), session)
    return OnnxAcoustic(features, vocabulary, time_stride, session)
