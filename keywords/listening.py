"""Detects keywords in a stream of audio (microphone, files, pipe) with the model of a bundle.

A LiteRT or ONNX model of a bundle needs neither TensorFlow nor Keras; labels, front end, threshold, smoothing
and refractory time come from the bundle. Memory use is independent of the stream's length.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bundle.folder import find_bundle, open_bundle
from bundle.variants import Format, Precision
from streaming.chunks import cut_blocks
from streaming.conversion.modes import Mode
from streaming.keyword import Detection, DetectionConfig, KeywordDetector, KeywordStream, smoothing_calls
from utils.config import build_config
from utils.errors import BundleError
from utils.features.keyword import KeywordFeatureConfig
from utils.run_folder.checksum_files import file_hash

BLOCK_SECONDS = 0.1  # sound in a block: the longest delay of a detection


@dataclass(frozen=True)
class Listener:
    """A streamed keyword model, ready to listen.

    Attributes:
        stream: samples → probabilities.
        labels: labels of the columns of the probabilities.
        detection: threshold, smoothing and refractory time.
        window_calls: calls of the model until its window is filled.
        sample_rate: sample rate of the model, in Hz.
    """

    stream: KeywordStream
    labels: tuple[str, ...]
    detection: DetectionConfig
    window_calls: int
    sample_rate: int

    @property
    def silent_calls(self) -> int:
        """Calls of silence before and after the sound: they fill the model's window and the average."""
        return self.window_calls + smoothing_calls(self.detection, self.stream.call_seconds)

    def detector(self, threshold: float | None = None) -> KeywordDetector:
        """A detector in the outputs of :func:`probabilities_of`, with the listener's threshold or another."""
        config = self.detection if threshold is None else replace(self.detection, threshold=threshold)
        return KeywordDetector(self.labels, config, self.stream.call_seconds, self.silent_calls)


def open_listener(model: str | Path, threshold: float | None = None) -> Listener:
    """Open the streamed model of a bundle.

    Args:
        model: an artefact's file in its bundle, or the bundle's folder.
        threshold: replaces that of the bundle.

    Raises:
        BundleError: not a bundle, damaged, a bundle of speech, or an artefact that does not stream.
        ConfigError: the threshold is out of range.
    """
    path = Path(model)
    if (path / "bundle.json").is_file():
        bundle = open_bundle(path)
        name = _stream_name(bundle.artefacts, path)
    else:
        bundle, name = find_bundle(path)
    if bundle.metadata["kind"] != "keyword":
        raise BundleError(
            "this bundle holds no keyword model",
            where=bundle.path,
            hint="for speech: `python transcribe.py - --stream --speech RUN`",
        )
    artefact = bundle.open(name)
    if artefact.mode is Mode.NON_STREAM_INFERENCE:
        raise BundleError(
            "this artefact takes whole clips",
            where=path,
            hint="take a stream_internal or stream_external one",
        )
    decoding, where = bundle.decoding, str(bundle.path)
    if threshold is not None:
        decoding, where = {**decoding, "threshold": threshold}, f"{where} with threshold={threshold:g}"
    config = build_config(DetectionConfig, decoding, where=where)
    features, geometry = bundle.features, bundle.stream
    assert isinstance(features, KeywordFeatureConfig)
    stream = KeywordStream(artefact, features, int(geometry["chunk"]))
    window = math.ceil(geometry["due"] / geometry["chunk"])
    return Listener(stream, bundle.labels, config, window, features.sample_rate)


def is_export_of(bundle: Path, weights: Path) -> bool:
    """Whether a bundle was made of the model with these weights.

    Raises:
        BundleError: the bundle is damaged.
    """
    source = open_bundle(bundle).metadata.get("source", {})
    return weights.is_file() and source.get("weights_hash") == file_hash(weights)


def detect_keywords(listener: Listener, blocks: Iterable[np.ndarray]) -> Iterator[Detection]:
    """Yield the keywords in a new stream as they are detected.

    Args:
        listener: the model.
        blocks: samples in [-1, 1], (samples,) each, at the listener's sample rate.
    """
    detector = listener.detector()
    for probabilities in probabilities_of(listener, blocks):
        yield from detector.feed(probabilities)


def probabilities_of(listener: Listener, blocks: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield probabilities (calls, labels) of a new stream, each time that audio completes a call.

    Silence precedes and follows the audio: it may begin or end with a keyword, or be shorter than the model's
    window.

    Args:
        listener: the model.
        blocks: samples in [-1, 1], (samples,) each, at the listener's sample rate.
    """
    listener.stream.reset()
    seconds = listener.silent_calls * listener.stream.call_seconds
    silence = np.zeros(round(seconds * listener.sample_rate), np.float32)
    padded = itertools.chain([silence], blocks, [silence])
    for piece in cut_blocks(padded, max(1, round(BLOCK_SECONDS * listener.sample_rate))):
        probabilities = listener.stream.feed(piece)
        if len(probabilities):
            yield probabilities


def _stream_name(artefacts: Mapping[str, Mapping[str, Any]], path: Path) -> str:
    """Name of the bundle's LiteRT artefact with external state, preferably in float."""
    wanted = (Format.LITERT, Mode.STREAM_EXTERNAL_STATE_INFERENCE)
    streams = [name for name, facts in artefacts.items() if (facts["format"], facts["state"]) == wanted]
    if not streams:
        raise BundleError(
            "the bundle holds no streamed LiteRT model",
            where=path,
            hint="export.py RUN --format litert --mode stream_external",
        )
    return min(streams, key=lambda name: artefacts[name]["precision"] != Precision.FLOAT)
