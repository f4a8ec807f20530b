"""Reads the weights of a packed speech run, as float32 by the paths of the Keras variables."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from model_speech.packed_run import QUANTISED, SCALE, WEIGHTS
from utils.errors import RunError
from utils.run_folder.checksums import verified
from utils.run_folder.run import check_finite

_HINT = "copy the folder again"


def read_packed_weights(path: str | Path) -> dict[str, np.ndarray]:
    """The weights of ``network.onnx`` as float32 arrays, in the order of the model's variables.

    Raises:
        RunError: the file is missing, damaged or changed, or has weights that are not finite.
    """
    verified(path)
    try:
        model = onnx.load(path)
        names = next(entry.value for entry in model.metadata_props if entry.key == WEIGHTS).splitlines()
        arrays = {tensor.name: tensor for tensor in model.graph.initializer}
        weights = {name: _values(name, arrays) for name in names}
    except Exception as error:  # onnx has no name for the error of a damaged file
        raise RunError(f"cannot read the network ({error})", where=path, hint=_HINT) from error
    check_finite(weights, path)
    return weights


def _values(name: str, arrays: Mapping[str, onnx.TensorProto]) -> np.ndarray:
    if name in arrays:
        return onnx.numpy_helper.to_array(arrays[name])
    integers, scales = (onnx.numpy_helper.to_array(arrays[name + end]) for end in (QUANTISED, SCALE))
    return integers * scales


def assign_weights(model: Any, weights: Mapping[str, np.ndarray], path: str | Path) -> None:
    """Give a Keras model the weights of a file.

    Raises:
        RunError: the file belongs to another model; ``path`` is named.
    """
    own = weight_variables(model)
    wrong = sorted(own.keys() ^ weights.keys()) or [
        name for name, variable in own.items() if tuple(variable.shape) != weights[name].shape
    ]
    if wrong:
        shown = ", ".join(wrong[:4])
        raise RunError(
            f"the weights belong to another model than config.yaml says ({shown})",
            where=path,
            hint="config.yaml and vocabulary/ must be those of the training",
        )
    for name, variable in own.items():
        variable.assign(weights[name])


def weight_variables(model: Any) -> dict[str, Any]:
    """The variables of a Keras model by their paths, without the states of random generators."""
    return {variable.path: variable for variable in model.variables if "seed_generator" not in variable.path}
