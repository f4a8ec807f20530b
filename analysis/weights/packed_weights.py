"""Reads the weights of a packed speech model, as it computes with them, in the form of a weights file.

The file has integers with a scale for each output channel (:mod:`model_speech.packed_run`). Called by
``inspect_model.py``.
"""

from itertools import groupby
from pathlib import Path

import numpy as np

from analysis.weights.weight_file import Layer, Weight, WeightFile
from model_speech.packed_weights import read_packed_weights

PACKED = "packed model, weights rounded to int8"


def read_packed_file(path: str | Path) -> WeightFile:
    """All weights of ``network.onnx`` of a packed run, as float32, in the order of the model.

    Raises:
        RunError: the file is missing, damaged or changed, or has weights that are not finite.
    """
    arrays = read_packed_weights(path)
    layers = [
        _layer(layer, {name: arrays[name] for name in names})
        for layer, names in groupby(arrays, key=lambda name: name.rpartition("/")[0])
    ]
    return WeightFile(Path(path), PACKED, {}, tuple(layers), ordered=True, state_values=0)


def _layer(name: str, arrays: dict[str, np.ndarray]) -> Layer:
    weights = tuple(Weight(path.rpartition("/")[2], path, array) for path, array in arrays.items())
    # Depthwise convolutions over time alone have kernels (frames, channels, 1).
    is_depthwise = any(weight.array.ndim == 3 and weight.array.shape[-1] == 1 for weight in weights)
    return Layer(name, name, "depthwise_conv1d" if is_depthwise else "", weights)
