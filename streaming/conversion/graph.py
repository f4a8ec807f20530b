"""Reads a functional Keras model as a graph: its layer calls in order, connected by numbered wires.

Nested models are unfolded. A wire is a tensor of one call: a layer (or a nested model) that is called twice
has different wires each time. In this folder only this module uses private attributes of Keras.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import keras

from utils.errors import ConfigError

Shape = tuple[Any, ...]


@dataclass(frozen=True)
class Call:
    """A call of a layer (or of an operation of `keras.ops`).

    Attributes:
        layer: the layer or operation.
        inputs: wires of all tensors in the arguments, in order.
        outputs: wires of the results.
        input_shapes: shapes of ``inputs``, the batch first.
        output_shapes: shapes of ``outputs``.
        arguments: the arguments as Keras records them.
    """

    layer: Any
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    input_shapes: tuple[Shape, ...]
    output_shapes: tuple[Shape, ...]
    arguments: Any

    def repeat(self, layer: Any, tensors: Sequence[Any]) -> list[Any]:
        """Call ``layer`` with the arguments of this call and other tensors; return the list of results."""
        given = dict(zip(map(id, self.arguments.keras_tensors), tensors, strict=True))
        args, kwargs = self.arguments.fill_in(given)
        kwargs.pop("training", None)  # the rebuilt model is for inference
        return keras.tree.flatten(layer(*args, **kwargs))


@dataclass(frozen=True)
class Graph:
    """A model's calls in execution order.

    Attributes:
        inputs: wires of the model's inputs.
        outputs: wires of its outputs.
        calls: calls of the layers, in execution order.
        shapes: shape of each wire, the batch first.
        dtypes: type of each input.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    calls: tuple[Call, ...]
    shapes: dict[int, Shape]
    dtypes: tuple[str, ...]


def read_graph(model: keras.Model) -> Graph:
    """Read a functional or sequential model.

    Raises:
        ConfigError: the model is neither, or isn't built, and so has no graph.
    """
    function = _function(model)
    if function is None:
        raise ConfigError(
            f"the model '{model.name}' is not a functional model, so it has no graph of layers",
            hint="build it as keras.Model(inputs, outputs), or give a Sequential an Input",
        )
    numbers = itertools.count()
    shapes: dict[int, Shape] = {}
    inputs = _new_wires(function.inputs, numbers, shapes)
    calls: list[Call] = []
    outputs = _walk(function, inputs, numbers, shapes, calls)
    dtypes = tuple(tensor.dtype for tensor in function.inputs)
    return Graph(inputs, outputs, tuple(calls), shapes, dtypes)


def _function(layer: Any) -> keras.Function | None:
    """The Keras function of a model with a graph, otherwise None."""
    if isinstance(layer, keras.Sequential):
        return layer._functional
    return layer if isinstance(layer, keras.Function) else None


def _new_wires(tensors: Sequence[Any], numbers: Iterator[int], shapes: dict[int, Shape]) -> tuple[int, ...]:
    wires = tuple(next(numbers) for _ in tensors)
    shapes.update((wire, tuple(tensor.shape)) for wire, tensor in zip(wires, tensors, strict=True))
    return wires


def _walk(
    function: keras.Function,
    inputs: tuple[int, ...],
    numbers: Iterator[int],
    shapes: dict[int, Shape],
    calls: list[Call],
) -> tuple[int, ...]:
    """Append the calls of ``function`` on the wires ``inputs``; return the wires of its outputs."""
    wires = dict(zip(map(id, function.inputs), inputs, strict=True))
    for node in _nodes(function):
        if node.is_input or not all(id(tensor) in wires for tensor in node.input_tensors):
            continue
        given = tuple(wires[id(tensor)] for tensor in node.input_tensors)
        nested = _function(node.operation)
        if nested is not None:
            made = _walk(nested, given, numbers, shapes, calls)
        else:
            made = _new_wires(_results(node, [shapes[wire] for wire in given]), numbers, shapes)
            input_shapes = tuple(shapes[wire] for wire in given)
            output_shapes = tuple(shapes[wire] for wire in made)
            calls.append(Call(node.operation, given, made, input_shapes, output_shapes, node.arguments))
        wires.update(zip(map(id, node.outputs), made, strict=True))
    return tuple(wires[id(tensor)] for tensor in function.outputs)


def _results(node: Any, input_shapes: Sequence[Shape]) -> list[Any]:
    """Result tensors of a call; a nested model may be called on other shapes than it was built for."""
    given = node.input_tensors
    if list(input_shapes) == [tuple(tensor.shape) for tensor in given]:
        return node.outputs
    tensors = [keras.KerasTensor(shape, x.dtype) for shape, x in zip(input_shapes, given, strict=True)]
    args, kwargs = node.arguments.fill_in(dict(zip(map(id, given), tensors, strict=True)))
    return keras.tree.flatten(node.operation.compute_output_spec(*args, **kwargs))


def _nodes(function: keras.Function) -> Iterator[Any]:
    """The nodes, from the inputs to the outputs."""
    for depth in sorted(function._nodes_by_depth, reverse=True):
        yield from function._nodes_by_depth[depth]
