"""Finds the output layer of a weights file, compares it with a vocabulary; lists statistics of all layers.

The statistics are mean, range, zeros and values that are not finite.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis.weights.weight_file import Layer, Weight, WeightFile
from utils.errors import RunError
from utils.run_folder.checksums import verified
from utils.run_folder.run import RunFolder, arrays_not_finite
from utils.text_table import text_table
from utils.vocabulary import Vocabulary, explain_mismatch, first_few, transfer_command

OUTPUT_NAME = "logits"  # name of the output layer in all models of this project
ACOUSTIC, HANZI = "acoustic.txt", "hanzi.txt"  # vocabularies in a run folder


@dataclass(frozen=True)
class Output:
    """The layer that scores the classes.

    Attributes:
        layer: name of the layer.
        classes: number of its outputs.
        guessed: whether neither its name nor its position identifies it: it is only the likeliest layer.
    """

    layer: str
    classes: int
    guessed: bool


def find_output(file: WeightFile) -> Output | None:
    """The output layer: the layer named ``logits``, else the last one, else the dense layer numbered last."""
    candidates = [(layer, classes) for layer in file.layers if (classes := _outputs(layer))]
    named = [each for each in candidates if each[0].name.rpartition("/")[2] == OUTPUT_NAME]
    dense = [each for each in candidates if each[0].kind == "dense" and "/" not in each[0].name]
    likeliest = named or (not file.ordered and dense) or candidates
    if not likeliest:
        return None
    layer, classes = likeliest[-1]
    return Output(layer.name, classes, guessed=not named and not file.ordered)


def _outputs(layer: Layer) -> int | None:
    """The last dimension of a layer's kernel, (width, classes) or a convolution's; None without a kernel."""
    return next(
        (
            weight.array.shape[-1]
            for weight in layer.weights
            if weight.name == "kernel" and weight.array.ndim > 1
        ),
        None,
    )


def own_vocabulary(run: RunFolder) -> Path | None:
    """The vocabulary of a run's output layer; None if the run has none."""
    return next((path for name in (ACOUSTIC, HANZI) if (path := run.vocabulary(name)).is_file()), None)


def vocabulary_problem(
    output: Output, run: RunFolder | None, vocabulary_path: Path | None = None
) -> str | None:
    """Why the output layer does not fit a vocabulary, and a command that helps; None if it fits.

    Args:
        output: the output layer of the weights.
        run: the run folder of the weights, if known.
        vocabulary_path: the vocabulary to compare with; None: that of the run.

    Raises:
        VocabularyError: a vocabulary file cannot be read.
    """
    own = own_vocabulary(run) if run else None
    path = vocabulary_path or own
    if path is None:
        return None
    ours, theirs = Vocabulary.load(path), Vocabulary.load(own) if own else None
    head = f"the output layer '{output.layer}' has {output.classes} classes, {path} has {len(ours)} tokens"
    if theirs and len(theirs) != output.classes:
        return (
            f"{head}\nthe vocabulary beside the weights has {len(theirs)} tokens: it is not that of their "
            "training; put the weights and their own vocabulary into one run folder"
        )
    if len(ours) == output.classes and theirs in (None, ours):
        return None
    if theirs and run and own and path:
        return f"{head}\n{explain_mismatch(ours, theirs)}\n{_transfer_advice(run, own, path)}"
    return (
        f"{head}\nthe weights cannot be loaded into a model of this vocabulary; the tokens of their classes "
        "are in the vocabulary of their training: give the whole run folder"
    )


def _transfer_advice(run: RunFolder, own: Path, vocabulary_path: Path) -> str:
    """How to use the weights of a run with another vocabulary."""
    if own.name != ACOUSTIC:
        return f"train a language model with that vocabulary from these weights: initialise_from={run.path}"
    source = run.path if run.path.name not in ("", "..") else run.path.resolve()
    command = transfer_command(source, source.with_name(f"{source.name}_transferred"), vocabulary_path)
    return f"to transfer the weights of the shared tokens to a new run:\n  {command}"


_HEADINGS = ("layer / weight", "shape", "type", "parameters", "mean", "deviation", "min", "max", "zeros")
_NOT_FINITE = "NaN/inf"  # a column that is shown if there are such values
_ATTRIBUTE_SHOWN = 100  # characters; the config of a whole model is one attribute
_SUMMARY_NAME = re.compile(r"^│ (\w+)", re.MULTILINE)
_VALUES_SHOWN = 100  # of an array; of larger arrays only the edges


@dataclass(frozen=True)
class Statistics:
    """Statistics of one array; mean, deviation, min and max are those of the finite values, None without any.

    Attributes:
        zeros: fraction of the values that are exactly 0.
        nan: number of values that are not a number.
        infinite: number of infinite values.
    """

    mean: float | None
    deviation: float | None
    min: float | None
    max: float | None
    zeros: float
    nan: int
    infinite: int


def statistics(array: np.ndarray) -> Statistics:
    """Statistics of an array of any shape, computed in float64, which a mean of 10⁷ float32 values needs."""
    values = np.asarray(array, np.float64)
    finite = values[np.isfinite(values)]
    return Statistics(
        mean=float(finite.mean()) if finite.size else None,
        deviation=float(finite.std()) if finite.size else None,
        min=float(finite.min()) if finite.size else None,
        max=float(finite.max()) if finite.size else None,
        zeros=float((values == 0).mean()) if values.size else 0.0,
        nan=int(np.isnan(values).sum()),
        infinite=int(np.isinf(values).sum()),
    )


def summary_order(run: RunFolder) -> list[str]:
    """Names of the layers in the model's order, from ``model_summary.txt``; empty without this file."""
    path = run.model_summary
    if not path.is_file():
        return []
    return _SUMMARY_NAME.findall(verified(path).read_text(encoding="utf-8", errors="replace"))


def find_layer(file: WeightFile, name: str) -> Layer:
    """The layer with this name, or with this group in the file.

    Raises:
        RunError: there is none; the hint has similar names.
    """
    for layer in file.layers:
        if name in (layer.name, layer.path):
            return layer
    names = [layer.name for layer in file.layers]
    near = difflib.get_close_matches(name, names, n=3) or names[:5]
    raise RunError(
        f"no layer '{name}' with weights",
        where=file.path,
        hint=f"there are: {', '.join(near)}{', …' if len(names) > len(near) else ''}",
    )


def weights_text(file: WeightFile) -> str:
    """Size, root attributes, a line for each layer and weight, the output layer, and non-finite values."""
    arrays = sum(len(layer.weights) for layer in file.layers)
    lines = [f"{file.path}: {file.format}, {file.parameters:,} parameters in {arrays} arrays"]
    if file.state_values:
        lines.append(f"also {file.state_values:,} values of an optimiser or of random generators")
    lines += [f"attribute {name}: {shortened(value)}" for name, value in file.attributes.items()]
    return "\n".join([*lines, "", _table(file.layers), *_closing(file, find_output(file))]) + "\n"


def layer_values(layer: Layer) -> str:
    """The values of a layer's weights; of large arrays only the edges."""
    parts = []
    for weight in layer.weights:
        with np.printoptions(threshold=_VALUES_SHOWN, linewidth=100, precision=4, suppress=True):
            text = str(weight.array)
        parts.append(f"{layer.name} {weight.name} {weight.array.shape} {weight.array.dtype}\n{text}\n")
    return "\n".join(parts)


def _table(layers: tuple[Layer, ...]) -> str:
    figures = {weight.path: statistics(weight.array) for layer in layers for weight in layer.weights}
    not_finite = any(each.nan or each.infinite for each in figures.values())
    rows = []
    for layer in layers:
        rows.append([layer.name, "", "", f"{layer.parameters:,}"] + [""] * (5 + not_finite))
        rows += [_row(weight, figures)[: 9 + not_finite] for weight in layer.weights]
    return text_table([*_HEADINGS, _NOT_FINITE][: 9 + not_finite], rows, left=3)


def _row(weight: Weight, figures: Mapping[str, Statistics]) -> list[str]:
    found = figures[weight.path]
    values = (found.mean, found.deviation, found.min, found.max)
    numbers = ["–" if value is None else f"{value:.4g}" for value in values]
    shape = "×".join(map(str, weight.array.shape)) or "scalar"
    not_finite = f"{found.nan}/{found.infinite}" if found.nan or found.infinite else ""
    size = f"{weight.array.size:,}"
    zeros = f"{100 * found.zeros:.1f} %" if found.zeros else "0"
    return [
        f"  {weight.name}",
        shape,
        str(weight.array.dtype),
        size,
        *numbers,
        zeros,
        not_finite,
    ]


def _closing(file: WeightFile, output: Output | None) -> list[str]:
    lines = []
    if output:
        note = " (guessed: the file has no order)" if output.guessed else ""
        lines.append(f"output layer: {output.layer}, {output.classes} classes{note}")
    bad = [
        layer.name
        for layer in file.layers
        if arrays_not_finite({weight.name: weight.array for weight in layer.weights})
    ]
    if bad:
        lines.append(f"NaN or infinite values in {len(bad)} layers: {first_few(bad, 5)}")
    return lines


def shortened(value: str) -> str:
    """The beginning of a long value of an attribute, in one line."""
    value = " ".join(value.split())
    rest = len(value) - _ATTRIBUTE_SHOWN
    return value if rest <= 0 else f"{value[:_ATTRIBUTE_SHOWN]}… ({rest:,} more characters)"
