"""Turns a Keras model in one mode into a TensorFlow function with named tensors; writes SavedModels.

All formats are written from this function: tensors by name (``input``, ``state_00_conv``) → tensors by name
(``output``, ``state_00_conv_next``). Frozen graphs are written here too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from bundle.runtimes.artefacts import INPUT, LENGTHS, NEXT_SUFFIX, OUTPUT
from bundle.runtimes.tensorflow import RESET
from streaming.conversion.layers import reset_state
from streaming.conversion.modes import Mode

_BUNDLE_NAMES = {"features": INPUT, "syllables": INPUT, "lengths": LENGTHS}
"""Names of the inputs of acoustic and language models → their names in every artefact."""


@dataclass(frozen=True)
class ModelInMode:
    """A model in one mode, ready for export.

    Attributes:
        state: mode of the model.
        model: Keras model with one input ``(batch, …)``, or for whole utterances ``{"features", "lengths"}``
            or ``{"syllables"}``. Streams have batch 1; with external state ``{"input", states}`` →
            ``{"output", next states}``.
        frames: frames of a clip, for a format that needs a fixed number; 0: as in the model.
    """

    state: Mode
    model: keras.Model
    frames: int = 0

    @property
    def state_names(self) -> list[str]:
        """Names of the external states."""
        return sorted(self._inputs().keys() - {INPUT, LENGTHS})

    def signature(self, batch: int | None) -> dict[str, tf.TensorSpec]:
        """Specification of each input by name; ``batch`` is for clips, streams have batch 1."""
        batch = batch if self.state is Mode.NON_STREAM_INFERENCE else 1
        return {
            name: tf.TensorSpec(self._shape(tensor, batch), tensor.dtype, name=name)
            for name, tensor in self._inputs().items()
        }

    def function(self, batch: int | None) -> Callable[[Mapping[str, tf.Tensor]], dict[str, tf.Tensor]]:
        """The model as a function of tensors by name, for the shapes of :meth:`signature`."""

        def call(inputs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
            if isinstance(self.model.input, Mapping):
                given = {name: inputs[_BUNDLE_NAMES.get(name, name)] for name in map(str, self.model.input)}
            else:
                given = inputs[INPUT]
            result = self.model(given, training=False)
            outputs = result if self.state is Mode.STREAM_EXTERNAL_STATE_INFERENCE else {OUTPUT: result}
            return {name: tf.identity(value, name=name) for name, value in outputs.items()}

        return tf.function(call, input_signature=[self.signature(batch)], autograph=False)

    def _shape(self, tensor: keras.KerasTensor, batch: int | None) -> tuple[int | None, ...]:
        frames = [tensor.shape[1] or self.frames or None] if len(tensor.shape) > 1 else []
        return (batch, *frames, *tensor.shape[2:])

    def _inputs(self) -> dict[str, keras.KerasTensor]:
        if not isinstance(self.model.input, Mapping):
            return {INPUT: self.model.input}
        return {_BUNDLE_NAMES.get(str(name), str(name)): tensor for name, tensor in self.model.input.items()}


def unroll_recurrences(model: keras.Model, max_frames: int) -> None:
    """Unroll recurrent layers over at most ``max_frames`` frames: LiteRT can't quantise loops."""
    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.RNN) and (layer.input.shape[1] or max_frames + 1) <= max_frames:
            layer.unroll = True


def write_saved_model(stage: ModelInMode, path: Path, batch: int | None = None) -> None:
    """Write a SavedModel. Its signature has the name of the mode; for internal state there is also ``reset``.

    Args:
        stage: the model.
        path: path of the new folder.
        batch: batch size of a model of clips; None: any.
    """
    archive = keras.export.ExportArchive()
    archive.track(stage.model)
    archive.add_endpoint(str(stage.state), stage.function(batch))
    if stage.state is Mode.STREAM_INTERNAL_STATE_INFERENCE:

        def reset() -> dict[str, tf.Tensor]:
            reset_state(stage.model)
            return {"done": tf.constant(True)}

        archive.add_endpoint(RESET, tf.function(reset, input_signature=[], autograph=False))
    archive.write_out(str(path), verbose=False)


def write_frozen_graph(stage: ModelInMode, path: Path) -> None:
    """Write a graph without variables, as TensorFlow 1 tools and OpenCV read it.

    Inputs, output and states keep their names.
    """
    function: Any = stage.function(None)
    concrete = function.get_concrete_function()
    frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=False)
    definition = frozen.graph.as_graph_def()
    # The outputs of a dictionary are sorted by name.
    names = sorted([OUTPUT, *(name + NEXT_SUFFIX for name in stage.state_names)])
    existing = {node.name for node in definition.node}
    for name, tensor in zip(names, frozen.outputs, strict=True):
        if name in existing:
            continue  # the graph has kept the name
        node = definition.node.add(op="Identity", name=name, input=[tensor.name.removesuffix(":0")])
        node.attr["T"].type = tensor.dtype.as_datatype_enum
    path.write_bytes(definition.SerializeToString(deterministic=True))
