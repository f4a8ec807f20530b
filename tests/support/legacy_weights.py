"""Writes HDF5 files in the format of Keras 2.3, without Keras."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import h5py
import numpy as np

ATTRIBUTE_LIMIT = 64512  # bytes; Keras cut longer lists of names into numbered attributes
Layers = Mapping[str, Mapping[str, np.ndarray]]


def write_legacy(path: Path, layers: Layers, whole_model: bool = False, limit: int = ATTRIBUTE_LIMIT) -> Path:
    """Write the file of ``model.save_weights`` (with ``whole_model``: ``model.save``) of Keras 2.3.

    Args:
        path: path of the file.
        layers: layer → ``{"dense_2/kernel:0": array}``; a layer without weights has an empty mapping.
        whole_model: whether configs and the state of an optimiser are included.
        limit: largest number of bytes of names in one attribute.
    """
    with h5py.File(path, "w") as file:
        if whole_model:
            _versions(file)
            config = {
                "class_name": "Model",
                "config": {"name": "model_1", "layers": [{"name": n} for n in layers]},
            }
            file.attrs["model_config"] = json.dumps(config).encode("utf8")
            file.attrs["training_config"] = json.dumps({"loss": {"ctc": "<lambda>"}}).encode("utf8")
            state = file.create_group("optimizer_weights")
            _names(state, "weight_names", ["Adam/iterations:0", "training/Adam/m_0:0"], limit)
            state.create_dataset("Adam/iterations:0", data=np.int64(7))
            state.create_dataset("training/Adam/m_0:0", data=np.zeros(5, np.float32))
        root = file.create_group("model_weights") if whole_model else file
        _names(root, "layer_names", list(layers), limit)
        _versions(root)
        for layer, weights in layers.items():
            group = root.create_group(layer)
            _names(group, "weight_names", list(weights), limit)
            for name, array in weights.items():
                group.create_dataset(name, data=array)
    return path


def _versions(group: h5py.Group) -> None:
    group.attrs["backend"] = b"tensorflow"
    group.attrs["keras_version"] = b"2.3.1"


def _names(group: h5py.Group, attribute: str, names: Sequence[str], limit: int) -> None:
    data = [name.encode("utf8") for name in names]
    parts = 1
    while any(part.nbytes > limit for part in np.array_split(np.asarray(data), parts)):
        parts += 1
    if parts == 1:
        group.attrs[attribute] = data  # an empty list becomes an empty array of floats
    for number, part in enumerate(np.array_split(np.asarray(data), parts) if parts > 1 else []):
        group.attrs[f"{attribute}{number}"] = part
