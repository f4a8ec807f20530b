"""A speech run's folder → its model as a plain causal network that streams, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import keras
from keras import layers

from model_speech.acoustic_model import AcousticModel, load_acoustic_model
from model_speech.layers.masking import MeanFrame, ReverseFrames
from model_speech.layers.relative_attention import RelativeAttention
from model_speech.registry import MODELS
from utils.errors import ConfigError
from utils.features.speech import FeatureConfig
from utils.run_folder.run import RunFolder, open_run
from utils.vocabulary import Vocabulary

# What needs an utterance's end before its first output, by kind of layer.
_NEED_THE_END = {
    MeanFrame: "a mean over the whole utterance (the gate's)",
    ReverseFrames: "goes from the utterance's end to its beginning (bidirectional)",
    RelativeAttention: "attention over the whole utterance",
}
_CONVOLUTIONS = (layers.Conv1D, layers.Conv2D, layers.DepthwiseConv1D)
_NAMED_OBSTACLES = 4
STREAMING_MODEL = "train model.name=compact_streaming: see configs/speech/compact_streaming.yaml"


@dataclass(frozen=True)
class CausalModel:
    """An acoustic model that hears nothing but the past, with all that belongs to it.

    Attributes:
        network: features (B, T, F) float32, T a multiple of ``time_stride`` → logits (B, T / time_stride, C):
            no lengths, no masks. Row ``delay + i`` belongs to the input frames from ``i * time_stride`` on.
        features: settings of the features that it was trained on.
        vocabulary: its C classes.
        time_stride: feature frames a row of logits.
        look_ahead: zero frames that stand for what is to come at an utterance's end, a multiple of
            ``time_stride``.
    """

    network: keras.Model
    features: FeatureConfig
    vocabulary: Vocabulary
    time_stride: int
    look_ahead: int

    @property
    def delay(self) -> int:
        """Rows of logits, after a beginning, that belong to no sound yet."""
        return self.look_ahead // self.time_stride

    @property
    def frame_seconds(self) -> float:
        """Seconds from one row of logits to the next."""
        return self.time_stride * self.features.hop_seconds

    @property
    def look_ahead_seconds(self) -> float:
        """Sound that a row of logits waits for after its own has ended: frames to come, and their overlap."""
        overlap = self.features.frame_samples - self.features.hop_samples
        return self.look_ahead * self.features.hop_seconds + overlap / self.features.sample_rate


def load_causal_model(run: str | Path, weights: str = "best") -> CausalModel:
    """Build the network of a speech run for streams and load its weights.

    Args:
        run: the folder that the training wrote.
        weights: as `load_acoustic_model` takes it.

    Raises:
        RunError: as there.
        ConfigError: the model, or its features, need an utterance's end; names what and what to use instead.
    """
    acoustic = load_acoustic_model(run, weights)
    folder = open_run(run, "speech")
    if found := streaming_obstacles(acoustic):
        what = "; ".join([*found[:_NAMED_OBSTACLES], *(["…"] if len(found) > _NAMED_OBSTACLES else [])])
        refused = f"'{acoustic.model.name}' can't go along with a stream: {what}"
        raise ConfigError(refused, where=folder.path, hint=STREAMING_MODEL)
    return causal_model(acoustic, folder)


def causal_model(acoustic: AcousticModel, run: RunFolder) -> CausalModel:
    """The network for streams of a loaded model that has no :func:`streaming_obstacles`."""
    entry = MODELS[acoustic.model.name]
    config = run.section("model", entry.config)
    network = entry.causal(acoustic.model, config)
    return CausalModel(
        network, acoustic.features, acoustic.vocabulary, acoustic.time_stride, config.look_ahead
    )


def streaming_obstacles(acoustic: AcousticModel) -> list[str]:
    """What keeps a model from streaming, each with the layer's name; empty: nothing does."""
    found = []
    if acoustic.features.normalise == "utterance":
        found.append("features.normalise is 'utterance' (take 'running')")
    for layer in acoustic.model.layers:
        reason = _NEED_THE_END.get(type(layer))
        if isinstance(layer, _CONVOLUTIONS) and layer.padding == "same" and layer.kernel_size[0] > 1:
            reason = "padding 'same' hears frames to come"
        elif isinstance(layer, layers.ZeroPadding1D) and layer.padding[1]:
            reason = f"hears {layer.padding[1]} frames to come"
        if reason:
            found.append(f"layer '{layer.name}': {reason}")
    if not found and not MODELS[acoustic.model.name].causal:
        found.append("it is made for utterances")
    return found
