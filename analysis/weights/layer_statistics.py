"""A weights file in; its layers with their statistics, as text or JSON, out."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from analysis.text_table import text_table
from analysis.weights.output_layer import Output, find_output
from analysis.weights.weight_file import Layer, Weight, WeightFile
from utils.errors import RunError
from utils.run_folder.checksums import verified
from utils.run_folder.run import RunFolder

_HEADINGS = ("layer / weight", "shape", "type", "parameters", "mean", "deviation", "min", "max", "zeros")
_NOT_FINITE = "NaN/inf"  # a column only where there are some
_ATTRIBUTE_SHOWN = 100  # characters; a whole model's config is one attribute
_SUMMARY_NAME = re.compile(r"^│ (\w+)", re.MULTILINE)
_VALUES_SHOWN = 100  # of an array, before its middle is left out


@dataclass(frozen=True)
class Statistics:
    """Of one array; mean, deviation, min and max are of the finite values, None if there are none.

    Attributes:
        zeros: share of values that are exactly 0.
        nan: values that are not a number.
        infinite: values that are infinite.
    """

    mean: float | None
    deviation: float | None
    min: float | None
    max: float | None
    zeros: float
    nan: int
    infinite: int


def statistics(array: np.ndarray) -> Statistics:
    """Figures of an array of any shape, computed in float64 (the mean of 10⁷ float32 values needs it)."""
    values = np.asarray(array, np.float64)
    finite = values[np.isfinite(values)]
    figures = (finite.mean(), finite.std(), finite.min(), finite.max()) if finite.size else (None,) * 4
    return Statistics(
        *(None if figure is None else float(figure) for figure in figures),
        zeros=float((values == 0).mean()) if values.size else 0.0,
        nan=int(np.isnan(values).sum()),
        infinite=int(np.isinf(values).sum()),
    )


def summary_order(run: RunFolder) -> list[str]:
    """Names of the layers in the model's order, as ``model_summary.txt`` has them; empty without one."""
    path = run.path / "model_summary.txt"
    if not path.is_file():
        return []
    return _SUMMARY_NAME.findall(verified(path).read_text(encoding="utf-8", errors="replace"))


def find_layer(file: WeightFile, name: str) -> Layer:
    """The layer of this name, or with this group in the file.

    Raises:
        RunError: there is none; names that come near are told.
    """
    for layer in file.layers:
        if name in (layer.name, layer.path):
            return layer
    names = [layer.name for layer in file.layers]
    near = difflib.get_close_matches(name, names, n=3) or names[:5]
    hint = f"there are: {', '.join(near)}{', …' if len(names) > len(near) else ''}"
    raise RunError(f"no layer '{name}' with weights", where=file.path, hint=hint)


def weights_text(file: WeightFile) -> str:
    """The file's facts, root attributes, a line for each layer and weight, the output layer, what is odd."""
    arrays = sum(len(layer.weights) for layer in file.layers)
    lines = [f"{file.path}: {file.format}, {file.parameters:,} parameters in {arrays} arrays"]
    if file.state_values:
        lines.append(f"besides {file.state_values:,} values of an optimiser or of random generators")
    lines += [f"attribute {name}: {_shortened(value)}" for name, value in file.attributes.items()]
    output = find_output(file)
    return "\n".join([*lines, "", _table(file.layers), *_closing(file, output)]) + "\n"


def layer_values(layer: Layer) -> str:
    """The values of a layer's weights; of long ones the edges."""
    parts = []
    for weight in layer.weights:
        with np.printoptions(threshold=_VALUES_SHOWN, linewidth=100, precision=4, suppress=True):
            text = str(weight.array)
        parts.append(f"{layer.name} {weight.name} {weight.array.shape} {weight.array.dtype}\n{text}\n")
    return "\n".join(parts)


def weights_json(file: WeightFile) -> dict[str, Any]:
    """The same facts as :func:`weights_text`, as plain values."""
    output = find_output(file)
    return {
        "file": str(file.path),
        "format": file.format,
        "attributes": dict(file.attributes),
        "parameters": file.parameters,
        "state_values": file.state_values,
        "layers": [layer_json(layer) for layer in file.layers],
        "output": asdict(output) if output else None,
    }


def layer_json(layer: Layer, values: bool = False) -> dict[str, Any]:
    """A layer and its weights as plain values; with ``values`` all of them, as nested lists."""
    weights = [
        {
            "name": weight.name,
            "path": weight.path,
            "shape": list(weight.array.shape),
            "dtype": str(weight.array.dtype),
            "parameters": weight.array.size,
            **asdict(statistics(weight.array)),
            **({"values": _plain(weight.array)} if values else {}),
        }
        for weight in layer.weights
    ]
    facts = {"name": layer.name, "path": layer.path, "parameters": layer.parameters}
    return {**facts, "weights": weights}


def _plain(array: np.ndarray) -> Any:
    """Nested lists; JSON has no NaN and no infinity: they are None."""
    if np.isfinite(array).all():
        return array.tolist()
    return np.where(np.isfinite(array), array.astype(object), None).tolist()


def _table(layers: tuple[Layer, ...]) -> str:
    figures = {weight.path: statistics(weight.array) for layer in layers for weight in layer.weights}
    odd = any(one.nan or one.infinite for one in figures.values())
    rows = []
    for layer in layers:
        rows.append([layer.name, "", "", f"{layer.parameters:,}"] + [""] * (5 + odd))
        rows += [_row(weight, figures)[: 9 + odd] for weight in layer.weights]
    return text_table([*_HEADINGS, _NOT_FINITE][: 9 + odd], rows, left=3)


def _row(weight: Weight, figures: Mapping[str, Statistics]) -> list[str]:
    one = figures[weight.path]
    numbers = ["–" if n is None else f"{n:.4g}" for n in (one.mean, one.deviation, one.min, one.max)]
    shape = "×".join(map(str, weight.array.shape)) or "scalar"
    not_finite = f"{one.nan}/{one.infinite}" if one.nan or one.infinite else ""
    size = f"{weight.array.size:,}"
    return [f"  {weight.name}", shape, str(weight.array.dtype), size, *numbers, _share(one.zeros), not_finite]


def _share(zeros: float) -> str:
    return f"{100 * zeros:.1f} %" if zeros else "0"


def _closing(file: WeightFile, output: Output | None) -> list[str]:
    lines = []
    if output:
        note = " (guessed: the file has no order)" if output.guessed else ""
        lines.append(f"output layer: {output.layer}, {output.classes} classes{note}")
    bad = [layer.name for layer in file.layers if not all(np.isfinite(w.array).all() for w in layer.weights)]
    if bad:
        shown = ", ".join(bad[:5]) + (", …" if len(bad) > 5 else "")
        lines.append(f"NaN or infinite values in {len(bad)} layers: {shown}")
    return lines


def _shortened(value: str) -> str:
    value = " ".join(value.split())
    rest = len(value) - _ATTRIBUTE_SHOWN
    return value if rest <= 0 else f"{value[:_ATTRIBUTE_SHOWN]}… ({rest:,} more characters)"
