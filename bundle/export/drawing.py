"""Draws the graph of a Keras model as SVG, with a box per layer and an arrow per tensor."""

import math
from collections.abc import Sequence
from html import escape

import keras

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 230, 44, 24, 30, 16
_COLOURS = {  # fill by what a layer does
    "input": "#dbe7f5",
    "weights": "#e3f1df",
    "state": "#f7e3d4",
    "plain": "#f2f2f2",
}
_STYLE = "text{font:11px sans-serif}.n{font-weight:bold;font-size:12px}"


def graph_svg(model: keras.Model, title: str) -> str:
    """Draw a functional model.

    Returns:
        An SVG document. Layers with weights are green, those with the state of a stream orange.
    """
    parents = _parents(model)
    rows = _rows(parents)
    positions = _positions(rows)
    width = max(x for x, _ in positions.values()) + _WIDTH + 2 * _MARGIN + _GAP_X
    height = max(y for _, y in positions.values()) + _HEIGHT + _MARGIN
    layers = {layer.name: layer for layer in model.operations}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">',
        f"<style>{_STYLE}</style>",
        '<marker id="a" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0,1 L7,4 L0,7 Z" fill="#555"/></marker>',
        f'<text x="{_MARGIN}" y="{_MARGIN + 4}" class="n">{escape(title)}</text>',
    ]
    for name, before in parents.items():
        parts += [_arrow(positions[parent], positions[name]) for parent in before]
    parts += [_box(layers[name], positions[name]) for name in parents]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _parents(model: keras.Model) -> dict[str, list[str]]:
    """Layer name → the names of its input layers, in the order of the model."""
    parents: dict[str, list[str]] = {}
    inside = {layer.name for layer in model.operations}
    for layer in model.operations:
        names = [
            tensor._keras_history.operation.name
            for node in layer._inbound_nodes
            for tensor in node.input_tensors
        ]
        parents[layer.name] = [name for name in dict.fromkeys(names) if name in inside]
    return parents


def _rows(parents: dict[str, list[str]]) -> list[list[str]]:
    """Layers in rows: each below its input layers; model inputs directly above their first use."""
    depth: dict[str, int] = {}

    def find(name: str) -> int:
        if name not in depth:
            depth[name] = 1 + max((find(parent) for parent in parents[name]), default=-1)
        return depth[name]

    for name in parents:  # in topological order, so that the recursion isn't deep
        find(name)
    for name in [name for name, before in parents.items() if not before]:
        after = [depth[other] for other, before in parents.items() if name in before]
        depth[name] = max(0, min(after, default=1) - 1)
    rows: list[list[str]] = [[] for _ in range(max(depth.values()) + 1)]
    for name in parents:
        rows[depth[name]].append(name)
    return rows


def _positions(rows: Sequence[Sequence[str]]) -> dict[str, tuple[int, int]]:
    widest = max(len(row) for row in rows) * (_WIDTH + _GAP_X)
    positions = {}
    for number, row in enumerate(rows):
        left = _MARGIN + (widest - len(row) * (_WIDTH + _GAP_X)) // 2
        for column, name in enumerate(row):
            positions[name] = (left + column * (_WIDTH + _GAP_X), 2 * _MARGIN + number * (_HEIGHT + _GAP_Y))
    return positions


def _arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    x1, y1, x2, y2 = start[0] + _WIDTH // 2, start[1] + _HEIGHT, end[0] + _WIDTH // 2, end[1]
    # An arrow that skips a row passes beside its boxes.
    side = (_WIDTH * 2) // 3 if y2 - y1 > _GAP_Y else 0
    middle = (y1 + y2) // 2
    curve = f"M{x1},{y1} C{x1 + side},{middle} {x2 + side},{middle} {x2},{y2 - 1}"
    return f'<path d="{curve}" fill="none" stroke="#555" marker-end="url(#a)"/>'


def _box(layer: keras.layers.Layer, position: tuple[int, int]) -> str:
    x, y = position
    kind = type(layer).__name__
    parameters = sum(math.prod(weight.shape) for weight in getattr(layer, "weights", []))
    text = [
        escape(layer.name),
        escape(f"{kind} → {_shape(layer)}" + (f", {parameters:,}" if parameters else "")),
    ]
    colour = _COLOURS[_group(layer, kind, parameters)]
    return (
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="5" fill="{colour}" stroke="#888"/>'
        f'<text x="{x + 8}" y="{y + 18}" class="n">{text[0]}</text>'
        f'<text x="{x + 8}" y="{y + 35}">{text[1]}</text>'
    )


def _group(layer: keras.layers.Layer, kind: str, parameters: int) -> str:
    if kind == "InputLayer":
        return "input"
    if hasattr(layer, "shapes") and hasattr(layer, "external"):  # of streaming/conversion/layers.py
        return "state"
    return "weights" if parameters else "plain"


def _shape(layer: keras.layers.Layer) -> str:
    output = layer.output
    first = output[0] if isinstance(output, list | tuple) else output
    return "×".join("N" if size is None else str(size) for size in first.shape)
