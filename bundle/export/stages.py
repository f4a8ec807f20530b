"""A Keras model of clips or of a stream in; named TensorFlow functions, and a SavedModel, out.

All formats begin with the same function: tensors by name (``input``, ``state_00_conv``) → tensors by name
(``output``, ``state_00_conv_next``). What a stage can't do in one format, the file's own runtime shows later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from bundle.runtimes.artefacts import INPUT, LENGTHS, NEXT_SUFFIX, OUTPUT
from bundle.runtimes.tensorflow import RESET
from bundle.variants import State
from streaming.conversion.layers import reset_state

_BUNDLE_NAMES = {"features": INPUT, "syllables": INPUT, "lengths": LENGTHS}
"""What the inputs of acoustic and language models are called in every artefact."""


@dataclass(frozen=True)
class Stage:
    """A model in one mode, ready to be written.

    Attributes:
        state: the mode.
        model: one input ``(batch, …)``, or ``{"features", "lengths"}`` or ``{"syllables"}`` for whole
            utterances; streams: batch 1; external: ``{"input", states}`` → ``{"output", next states}``.
        frames: of a clip, where the model takes any number and a format doesn't; 0: as the model has it.
    """

    state: State
    model: keras.Model
    frames: int = 0

    @property
    def state_names(self) -> list[str]:
        """Of the external states."""
        return sorted(self._inputs().keys() - {INPUT, LENGTHS})

    def signature(self, batch: int | None) -> dict[str, tf.TensorSpec]:
        """Of each input by name; ``batch`` is that of a model of clips, streams take one."""
        batch = batch if self.state is State.NON_STREAM else 1
        return {
            name: tf.TensorSpec(self._shape(tensor, batch), tensor.dtype, name=name)
            for name, tensor in self._inputs().items()
        }

    def function(self, batch: int | None) -> Callable[[Mapping[str, tf.Tensor]], dict[str, tf.Tensor]]:
        """The model as a function of tensors by name, traced for these shapes."""

        def call(inputs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
            if isinstance(self.model.input, Mapping):
                given = {name: inputs[_BUNDLE_NAMES.get(name, name)] for name in self.model.input}
            else:
                given = inputs[INPUT]
            found = self.model(given, training=False)
            outputs = found if self.state is State.EXTERNAL else {OUTPUT: found}
            return {name: tf.identity(value, name=name) for name, value in outputs.items()}

        return tf.function(call, input_signature=[self.signature(batch)], autograph=False)

    def _shape(self, tensor: keras.KerasTensor, batch: int | None) -> tuple[int | None, ...]:
        frames = [tensor.shape[1] or self.frames or None] if len(tensor.shape) > 1 else []
        return (batch, *frames, *tensor.shape[2:])

    def _inputs(self) -> dict[str, keras.KerasTensor]:
        if not isinstance(self.model.input, Mapping):
            return {INPUT: self.model.input}
        return {_BUNDLE_NAMES.get(name, name): tensor for name, tensor in self.model.input.items()}


def unroll_recurrences(model: keras.Model, most: int) -> None:
    """Let recurrent layers over at most ``most`` frames run without a loop: LiteRT can't quantise loops."""
    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.RNN) and (layer.input.shape[1] or most + 1) <= most:
            layer.unroll = True


def write_saved_model(stage: Stage, path: Path, batch: int | None = None) -> None:
    """Write a SavedModel whose signature is named as the mode; internal state adds the signature ``reset``.

    Args:
        stage: what is written.
        path: of the new folder.
        batch: of a model of clips; None: any.
    """
    archive = keras.export.ExportArchive()
    archive.track(stage.model)
    archive.add_endpoint(str(stage.state), stage.function(batch))
    if stage.state is State.INTERNAL:

        def reset() -> dict[str, tf.Tensor]:
            reset_state(stage.model)
            return {"done": tf.constant(True)}

        archive.add_endpoint(RESET, tf.function(reset, input_signature=[], autograph=False))
    archive.write_out(str(path), verbose=False)


class StreamReference:
    """The source model's stream, in TensorFlow: what every artefact's stream is compared with.

    Args:
        stage: of external state.
    """

    def __init__(self, stage: Stage):
        self._function, self._names = stage.function(1), stage.state_names
        self._zeros = {
            name: np.zeros(spec.shape, np.float32)
            for name, spec in stage.signature(1).items()
            if name != INPUT
        }
        self.reset()

    def reset(self) -> None:
        """The next chunk begins a new stream."""
        self.states: dict[str, np.ndarray] = dict(self._zeros)

    def step(self, chunk: np.ndarray) -> np.ndarray:
        """The next chunk (1, frames a call, values) → logits."""
        found = self._function(
            {INPUT: tf.constant(chunk), **{k: tf.constant(v) for k, v in self.states.items()}}
        )
        self.states = {name: found[name + NEXT_SUFFIX].numpy() for name in self._names}
        return found[OUTPUT].numpy()
