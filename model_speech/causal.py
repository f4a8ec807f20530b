"""Makes a speech model a causal Keras network for streams, or reports the layers that prevent it."""

from dataclasses import dataclass
from typing import Any

import keras
from keras import layers

from model_speech.acoustic_model import AcousticModel
from model_speech.causal_timing import CausalTiming
from model_speech.layers.masking import MeanFrame, ReverseFrames
from model_speech.layers.relative_attention import RelativeAttention
from model_speech.registry import MODELS
from utils.run_folder.run import RunFolder

# Layers that need the whole utterance before their first output → the reason.
_WHOLE_UTTERANCE = {
    MeanFrame: "a mean over the whole utterance (of a gate)",
    ReverseFrames: "runs from the end of the utterance to its start (bidirectional)",
    RelativeAttention: "attention over the whole utterance",
}
_CONVOLUTIONS = (layers.Conv1D, layers.Conv2D, layers.DepthwiseConv1D)
STREAMING_HINT = "train model.name=compact_streaming: see configs/speech/compact_streaming.yaml"


@dataclass(frozen=True, eq=False)
class CausalModel(CausalTiming):
    """A loaded acoustic model that depends on past frames only.

    Attributes:
        network: features (B, T, F) float32, T a multiple of ``time_stride`` → logits (B, T / time_stride, C),
            without lengths and masks. Output frame ``delay + i`` belongs to the input frames from
            ``i * time_stride`` on.
    """

    network: keras.Model


def causal_model(acoustic: AcousticModel, run: RunFolder) -> CausalModel:
    """The causal network of a loaded model that has no :func:`streaming_obstacles`."""
    entry = MODELS[acoustic.model.name]
    config: Any = run.section("model", entry.config)
    assert entry.causal
    network = entry.causal(acoustic.model, config)
    timing = (acoustic.features, acoustic.vocabulary, acoustic.time_stride, config.look_ahead)
    return CausalModel(*timing, network=network)


def streaming_obstacles(acoustic: AcousticModel) -> list[str]:
    """Reasons why a model can't process a stream, with the layers' names; empty if it can."""
    obstacles = []
    if acoustic.features.normalise == "utterance":
        obstacles.append("features.normalise is 'utterance' (use 'running_ltass')")
    for layer in acoustic.model.layers:
        reason = _WHOLE_UTTERANCE.get(type(layer))
        if isinstance(layer, _CONVOLUTIONS) and layer.padding == "same" and layer.kernel_size[0] > 1:
            reason = "padding 'same' needs future frames"
        elif isinstance(layer, layers.ZeroPadding1D) and layer.padding[1]:
            reason = f"needs {layer.padding[1]} future frames"
        if reason:
            obstacles.append(f"layer '{layer.name}': {reason}")
    if not obstacles and not MODELS[acoustic.model.name].causal:
        obstacles.append("it is a model of whole utterances")
    return obstacles
