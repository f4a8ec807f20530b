"""Runs a SavedModel folder or a frozen graph with TensorFlow, without Keras."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import tensorflow as tf

from bundle.runtimes.artefacts import INPUT, LENGTHS, NEXT_SUFFIX, OUTPUT, STATE_PREFIX, ArtefactInfo, Backend
from streaming.conversion.modes import Mode
from utils.errors import BundleError

RESET = "reset"  # signature that resets the internal state


def open_backend(path: Path, threads: int) -> TensorFlowBackend:
    """Open a folder or a file; see :func:`bundle.runtimes.artefacts.open_artefact`.

    Raises:
        BundleError: TensorFlow can't read it.
    """
    try:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
    except RuntimeError:
        pass  # TensorFlow is already running in this process, with its threads
    try:
        return _saved_model(path) if path.is_dir() else _frozen_graph(path)
    except Exception as error:  # of TensorFlow, protobuf or the file system: no common class
        raise BundleError(
            f"TensorFlow can't read it ({error})", where=path, hint="export it again, or copy it again"
        ) from error


def _saved_model(path: Path) -> TensorFlowBackend:
    loaded = tf.saved_model.load(str(path))
    (state,) = set(loaded.signatures) & set(Mode)
    return TensorFlowBackend(Mode(state), loaded.signatures[state], loaded.signatures.get(RESET), loaded)


def _frozen_graph(path: Path) -> TensorFlowBackend:
    graph = tf.compat.v1.GraphDef.FromString(path.read_bytes())
    inputs = [node.name for node in graph.node if node.op == "Placeholder"]
    states = sorted(name for name in inputs if name.startswith(STATE_PREFIX))
    given = [name for name in (INPUT, LENGTHS) if name in inputs] + states
    outputs = [OUTPUT, *(name + NEXT_SUFFIX for name in states)]
    wrapped = tf.compat.v1.wrap_function(lambda: tf.graph_util.import_graph_def(graph, name=""), [])
    tensors = [[wrapped.graph.get_tensor_by_name(f"{n}:0") for n in names] for names in (given, outputs)]
    pruned = wrapped.prune(tensors[0], dict(zip(outputs, tensors[1], strict=True)))

    # Without tf.function each call would build the graph (10 ms). One trace serves inputs of all lengths.
    @tf.function(autograph=False, reduce_retracing=True)
    def call(**values: tf.Tensor) -> dict[str, tf.Tensor]:
        return pruned(*(values[name] for name in given))

    return TensorFlowBackend(
        Mode.STREAM_EXTERNAL_STATE_INFERENCE if states else Mode.NON_STREAM_INFERENCE,
        call,
        None,
        pruned,
        pruned,
    )


class TensorFlowBackend(Backend):
    """A function from tensors by name to tensors by name.

    Args:
        state: the mode.
        function: the function.
        reset: resets the internal state; None if there is none.
        owner: keeps the variables alive.
        graph: the function with the inputs and operations, if not ``function``.
    """

    def __init__(self, state: Mode, function, reset, owner, graph=None):
        self._function, self._reset, self._owner = function, reset, owner
        graph = graph or function
        inputs = {tensor.name.partition(":")[0]: tensor for tensor in graph.inputs}
        states = sorted(name for name in inputs if name.startswith(STATE_PREFIX))
        self.info = ArtefactInfo(
            state=state,
            input_shape=tuple(inputs[INPUT].shape),
            states={name: tuple(inputs[name].shape) for name in states},
            operations=_operations(graph.graph),
            takes_lengths=LENGTHS in inputs,
            takes_tokens=inputs[INPUT].dtype == tf.int32,
        )

    def call(
        self, inputs: Mapping[str, np.ndarray], states: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """See :class:`bundle.runtimes.artefacts.Backend`."""
        tensors = {name: tf.constant(value) for name, value in {**inputs, **states}.items()}
        outputs = self._function(**tensors)
        return outputs[OUTPUT].numpy(), {name: outputs[name + NEXT_SUFFIX].numpy() for name in states}

    def reset(self) -> None:
        """Reset the internal state."""
        if self._reset:
            self._reset()


def _operations(graph: tf.Graph) -> int:
    """Number of operations that compute something, without inputs, constants and identities."""
    idle = {"Placeholder", "Const", "Identity", "NoOp", "ReadVariableOp"}
    definition = graph.as_graph_def()
    nodes = [
        *definition.node,
        *(node for function in definition.library.function for node in function.node_def),
    ]
    calls = {"PartitionedCall", "StatefulPartitionedCall"}
    return sum(node.op not in idle | calls for node in nodes)
