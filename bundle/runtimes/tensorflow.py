"""A SavedModel folder or a frozen graph in; calls through TensorFlow out. Keras isn't needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import tensorflow as tf

from bundle.runtimes.artefacts import INPUT, LENGTHS, NEXT_SUFFIX, OUTPUT, STATE_PREFIX, Facts
from bundle.variants import State
from utils.errors import BundleError

RESET = "reset"


def open_backend(path: Path, threads: int) -> TensorFlowBackend:
    """Open a folder or a file; see :func:`bundle.runtimes.artefacts.open_artefact`."""
    try:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
    except RuntimeError:
        pass  # TensorFlow is at work in this process already, with the threads it has
    try:
        return _saved_model(path) if path.is_dir() else _frozen_graph(path)
    except Exception as error:  # of TensorFlow, of protobuf, of the file system: no common class
        hint = "export it again, or copy it again"
        raise BundleError(f"TensorFlow can't read it ({error})", where=path, hint=hint) from error


def _saved_model(path: Path) -> TensorFlowBackend:
    loaded = tf.saved_model.load(str(path))
    (state,) = set(loaded.signatures) & set(State)
    return TensorFlowBackend(State(state), loaded.signatures[state], loaded.signatures.get(RESET), loaded)


def _frozen_graph(path: Path) -> TensorFlowBackend:
    graph = tf.compat.v1.GraphDef.FromString(path.read_bytes())
    inputs = [node.name for node in graph.node if node.op == "Placeholder"]
    states = sorted(name for name in inputs if name.startswith(STATE_PREFIX))
    given = [name for name in (INPUT, LENGTHS) if name in inputs] + states
    outputs = [OUTPUT, *(name + NEXT_SUFFIX for name in states)]
    wrapped = tf.compat.v1.wrap_function(lambda: tf.graph_util.import_graph_def(graph, name=""), [])
    tensors = [[wrapped.graph.get_tensor_by_name(f"{n}:0") for n in names] for names in (given, outputs)]
    pruned = wrapped.prune(tensors[0], dict(zip(outputs, tensors[1], strict=True)))

    # Without tf.function each call sets the graph up anew: 10 ms. One trace serves inputs of all lengths.
    @tf.function(autograph=False, reduce_retracing=True)
    def call(**values: tf.Tensor) -> dict[str, tf.Tensor]:
        return pruned(*(values[name] for name in given))

    state = State.EXTERNAL if states else State.NON_STREAM
    return TensorFlowBackend(state, call, None, pruned, pruned)


class TensorFlowBackend:
    """A function of tensors by name.

    Args:
        state: the mode.
        function: tensors by name → tensors by name.
        reset: empties the state, where it is inside.
        owner: keeps the variables alive.
        graph: the function whose inputs and operations count, if it isn't ``function``.
    """

    def __init__(self, state: State, function, reset, owner, graph=None):
        self._function, self._reset, self._owner = function, reset, owner
        graph = graph or function
        inputs = {tensor.name.partition(":")[0]: tensor for tensor in graph.inputs}
        states = sorted(name for name in inputs if name.startswith(STATE_PREFIX))
        self.facts = Facts(
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
        found = self._function(**tensors)
        return found[OUTPUT].numpy(), {name: found[name + NEXT_SUFFIX].numpy() for name in states}

    def initial_states(self) -> dict[str, np.ndarray]:
        """Zeros."""
        return {name: np.zeros(shape, np.float32) for name, shape in self.facts.states.items()}

    def forget(self) -> None:
        """Empty the state that is inside."""
        if self._reset:
            self._reset()


def _operations(graph: tf.Graph) -> int:
    """How many operations compute something: inputs, constants and names left aside."""
    idle = {"Placeholder", "Const", "Identity", "NoOp", "ReadVariableOp"}
    definition = graph.as_graph_def()
    nodes = [
        *definition.node,
        *(node for function in definition.library.function for node in function.node_def),
    ]
    calls = {"PartitionedCall", "StatefulPartitionedCall"}
    return sum(node.op not in idle | calls for node in nodes)
