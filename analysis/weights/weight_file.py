"""Reads the layers and arrays of a weights file of any Keras version (HDF5 or ``.keras``), without Keras.

Three layouts are recognised: Keras 1 and 2 (attributes ``layer_names`` and ``weight_names`` list the arrays;
in a whole model they are in the group ``model_weights``), Keras 3 (groups ``layers/…/vars``), and any other
HDF5 file, whose groups are read as layers.
"""

from __future__ import annotations

import io
import itertools
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from utils.errors import RunError
from utils.run_folder.checksums import verified

LEGACY, KERAS_3, OTHER = "Keras 2 (legacy HDF5)", "Keras 3", "HDF5 of no Keras"
_WEIGHTS_IN_ZIP, _CONFIG_IN_ZIP, _METADATA_IN_ZIP = "model.weights.h5", "config.json", "metadata.json"
# Variables of the optimiser or of random generators, which are not part of the model.
_STATE = re.compile(r"(^|/)(optimizer|optimizer_weights|seed_generator(_\d+)?)(/|$)")
_CONTAINER = "layers|_layer_checkpoint_dependencies"
_NUMBER = re.compile(r"(\d+)")
_NORMALISATION = ("gamma", "beta", "moving_mean", "moving_variance")
# Keras 3 numbers the variables of a layer. Their names, by the class in the name of the group …
_NAMES = {
    "embedding": ("embeddings",),
    "cell": ("kernel", "recurrent_kernel", "bias"),  # of a recurrent layer
    "batch_normalization": _NORMALISATION,
    "masked_batch_normalization": _NORMALISATION,
    "layer_normalization": ("gamma", "beta"),
}
_SEPARABLE = ("depthwise_kernel", "pointwise_kernel", "bias")
_PROJECTION = "einsum_dense|(query|key|value|output)_dense"  # parts of attention; their biases have two axes
_KERNEL_AND_BIAS = ("kernel", "bias")  # … and for other classes, if the shapes match
# h5py has no error class of its own; a damaged size may request more memory than there is.
_ERRORS = (OSError, KeyError, ValueError, RuntimeError, TypeError, MemoryError, zipfile.BadZipFile)


@dataclass(frozen=True)
class Weight:
    """One array.

    Attributes:
        name: name inside its layer, such as ``kernel`` or ``query/kernel``.
        path: path inside the file.
        array: the values.
    """

    name: str
    path: str
    array: np.ndarray


@dataclass(frozen=True)
class Layer:
    """A layer that has weights.

    Attributes:
        name: name of the layer in the model, after that of an inner model (``encoder/dense_1``).
        path: group of the layer in the file.
        kind: class of the layer in snake case (``conv2d``), as far as the file contains it.
        weights: its arrays in the file's order.
    """

    name: str
    path: str
    kind: str
    weights: tuple[Weight, ...]

    @property
    def parameters(self) -> int:
        """The number of values of all its weights."""
        return sum(weight.array.size for weight in self.weights)


@dataclass(frozen=True)
class WeightFile:
    """The contents of a weights file.

    Attributes:
        path: the file.
        format: :data:`LEGACY`, :data:`KERAS_3` or :data:`OTHER`.
        attributes: attributes of the root (the metadata of a zip), as text.
        layers: layers that have weights.
        ordered: whether the layers are in the model's order, which a Keras 3 HDF5 file does not contain.
        state_values: number of values of an optimiser or a random generator, not of the model.
    """

    path: Path
    format: str
    attributes: Mapping[str, str]
    layers: tuple[Layer, ...]
    ordered: bool
    state_values: int

    @property
    def parameters(self) -> int:
        """The number of values of all layers."""
        return sum(layer.parameters for layer in self.layers)

    def in_order_of(self, names: Iterable[str]) -> WeightFile:
        """The same with the layers in the order of ``names``; unchanged if the order of a layer is not known.

        The layers of an inner model are put at its position.
        """
        positions = {name: position for position, name in enumerate(names)}
        own = {layer.name: layer.name.partition("/")[0] for layer in self.layers}
        if self.ordered or not positions.keys() >= set(own.values()):
            return self
        layers = sorted(self.layers, key=lambda layer: positions[own[layer.name]])
        return replace(self, layers=tuple(layers), ordered=True)


def read_weight_file(path: str | Path) -> WeightFile:
    """Read all weights of a file into memory.

    Raises:
        RunError: the file does not exist, is not an HDF5 file or Keras zip, or is damaged.
    """
    path = Path(path)
    with open_hdf5(path) as file:
        found = _read_hdf5(file, path)
        return _with_zip_facts(found) if zipfile.is_zipfile(path) else found


def count_parameters(path: str | Path) -> int:
    """The number of parameters in an HDF5 weights file, from the shapes without reading the values.

    Raises:
        RunError: the file is not an HDF5 file, or is damaged.
    """
    sizes: list[int] = []

    def add(name: str, item: Any) -> None:
        if _is_array(item) and not is_state(name):
            sizes.append(item.size)

    with open_hdf5(path) as file:
        file.visititems(add)
    return sum(sizes)


@contextmanager
def open_hdf5(path: str | Path) -> Iterator[h5py.File]:
    """Open an HDF5 file, or the one inside a Keras zip.

    Raises:
        RunError: as for :func:`read_weight_file`, also while the file is being read.
    """
    path = verified(path)
    if not path.is_file():
        message = "this is a folder, not a weights file" if path.is_dir() else "no such weights file"
        raise RunError(message, where=path, hint="give an HDF5 file (.h5, .weights.h5) or a .keras file")
    try:
        if not zipfile.is_zipfile(path):
            _check_signature(path)
        with h5py.File(_weights_in_zip(path) if zipfile.is_zipfile(path) else path) as file:
            yield file
    except _ERRORS as error:
        raise _damaged(path, " ".join(str(error).split())) from error


def is_state(name: str) -> bool:
    """Whether the dataset at this path is of an optimiser or a random generator, not of the model."""
    return bool(_STATE.search(name))


def attribute_text(value: object) -> str:
    """The value of an attribute; of several, such as names, with spaces between them."""
    return " ".join(map(_text, np.ravel(value).tolist())) if isinstance(value, np.ndarray) else _text(value)


def _damaged(path: Path, reason: str) -> RunError:
    return RunError(f"the weights file is damaged or cut off ({reason})", where=path, hint="copy it again")


def _check_signature(path: Path) -> None:
    if path.stat().st_size == 0:
        raise RunError("the weights file is empty", where=path, hint="copy it again")
    if not h5py.is_hdf5(path):
        raise RunError(
            "not an HDF5 file",
            where=path,
            hint="known: .h5 and .weights.h5 (HDF5), .keras (zip), or the folder of an unpacked run",
        )


def _weights_in_zip(path: Path) -> io.BytesIO:
    with zipfile.ZipFile(path) as archive:
        if _WEIGHTS_IN_ZIP not in archive.namelist():
            raise RunError(
                f"not a Keras model: the zip has no {_WEIGHTS_IN_ZIP}",
                where=path,
                hint="model.save('….keras') writes a .keras file",
            )
        return io.BytesIO(archive.read(_WEIGHTS_IN_ZIP))


def _with_zip_facts(found: WeightFile) -> WeightFile:
    """The same weights with the attributes and the order of layers that the Keras zip has in other files."""
    with zipfile.ZipFile(found.path) as archive:
        metadata = _json_in_zip(archive, _METADATA_IN_ZIP)
        layers = _json_in_zip(archive, _CONFIG_IN_ZIP).get("config", {}).get("layers", [])
    found = replace(found, attributes={key: str(value) for key, value in metadata.items()})
    return found.in_order_of(str(layer.get("config", {}).get("name")) for layer in layers)


def _json_in_zip(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    return json.loads(archive.read(name)) if name in archive.namelist() else {}


def _read_hdf5(file: h5py.File, path: Path) -> WeightFile:
    attributes = {key: attribute_text(value) for key, value in file.attrs.items()}
    arrays: dict[str, h5py.Dataset] = {}
    file.visititems(lambda name, item: arrays.update({name: item}) if _is_array(item) else None)
    state = sum(item.size for name, item in arrays.items() if is_state(name))
    root = file.get("model_weights", file)
    if _name_list(root, "layer_names"):
        return WeightFile(path, LEGACY, attributes, tuple(_legacy_layers(root, path)), True, state)
    own = {name: item for name, item in arrays.items() if not is_state(name)}
    is_keras_3 = any(name.split("/")[-2:-1] == ["vars"] for name in own)
    layers = _numbered_layers(file, own) if is_keras_3 else _groups(own)
    in_order = sorted(layers, key=lambda layer: _natural(layer.path))
    return WeightFile(path, KERAS_3 if is_keras_3 else OTHER, attributes, tuple(in_order), False, state)


def _is_array(item: object) -> bool:
    """Whether an item is a dataset of numbers; bfloat16, which HDF5 does not have, is two opaque bytes."""
    return isinstance(item, h5py.Dataset) and (item.dtype.kind in "fiub" or item.dtype == np.dtype("V2"))


def _values(item: h5py.Dataset) -> np.ndarray:
    array = np.asarray(item[()])
    if array.dtype == np.dtype("V2"):  # the upper half of a float32
        return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return array


def _legacy_layers(root: h5py.Group, path: Path) -> Iterator[Layer]:
    """Layers of a Keras 2 file by its attributes: the group ``dense_2`` lists ``dense_2/kernel:0``."""
    names = _name_list(root, "layer_names")
    extra = "top_level_model_weights"  # Keras 2.6 and later: those of the model itself
    for name in [*names, *([extra] if extra in root and extra not in names else [])]:
        if not isinstance(root.get(name), h5py.Group):
            raise _damaged(path, f"layer_names lists '{name}', which does not exist")
        weights = []
        for inner in _name_list(root[name], "weight_names"):
            item = root[name].get(inner)
            if not isinstance(item, h5py.Dataset):
                raise _damaged(path, f"layer '{name}' lists the weight '{inner}', which does not exist")
            plain = re.sub(r":\d+$", "", inner).removeprefix(f"{name}/")
            weights.append(Weight(plain, item.name.lstrip("/"), _values(item)))
        if weights:
            yield Layer(name, root[name].name.lstrip("/"), _kind(name), tuple(weights))


def _name_list(group: h5py.Group, attribute: str) -> list[str]:
    """A list of names; a long list is split into ``layer_names0``, ``layer_names1`` …"""
    parts = [attribute]
    if attribute not in group.attrs:
        numbered = (f"{attribute}{number}" for number in itertools.count())
        parts = list(itertools.takewhile(group.attrs.__contains__, numbered))
    # An empty list was written as floats, without anything to decode.
    return [_text(name) for part in parts for name in np.atleast_1d(group.attrs[part])]


def _numbered_layers(file: h5py.File, arrays: Mapping[str, h5py.Dataset]) -> Iterator[Layer]:
    """Layers of a Keras 3 file: ``layers/dense_1/vars/0`` is the first variable of a layer."""
    members: dict[str, dict[str, dict[str, h5py.Dataset]]] = {}  # layer → part of it → variable
    for name, item in arrays.items():
        group, _, variable = name.rpartition("/")
        owner, part = _owner(group.removesuffix("vars").strip("/"))
        members.setdefault(owner, {}).setdefault(part, {})[variable] = item
    for owner, parts in members.items():
        weights = []
        for part, variables in parts.items():
            group = f"{owner}/{part}".strip("/")
            names = _variable_names(_kind(group.rpartition("/")[2]), variables)
            weights += [
                Weight("/".join(filter(None, [part, name])), item.name.lstrip("/"), _values(item))
                for name, item in zip(names, variables.values(), strict=True)
            ]
        yield Layer(_layer_name(file, owner), owner, _kind(owner.rpartition("/")[2]), tuple(weights))


def _owner(group: str) -> tuple[str, str]:
    """``layers/encoder/layers/attention/query`` → (``layers/encoder/layers/attention``, ``query``)."""
    found = re.match(rf"((?:.*/)?(?:{_CONTAINER})/[^/]+)/?(.*)", group)
    if found:
        return found[1], found[2]
    return group.partition("/")[0], group.partition("/")[2]


def _layer_name(file: h5py.File, group: str) -> str:
    """The name of the layer in its model, after the names of the models around it."""
    names, below = [], ""
    for part in group.split("/"):
        below = f"{below}/{part}".strip("/")
        if not re.fullmatch(_CONTAINER, part):
            inside = file.get(f"{below}/vars" if below else "vars")
            names.append(_text(inside.attrs["name"]) if inside and "name" in inside.attrs else part)
    return "/".join(names) or "model"


def _variable_names(kind: str, variables: Mapping[str, h5py.Dataset]) -> list[str]:
    """Names for numbered variables if their class or shapes identify them, else the numbers."""
    shapes = [item.shape for item in variables.values()]
    known = _NAMES.get(kind, ())
    if known and (len(known) == len(shapes) or (kind == "cell" and len(shapes) == len(known) - 1)):
        return list(known[: len(shapes)])
    if kind.startswith("separable_conv") and len(shapes) in (2, 3):
        return list(_SEPARABLE[: len(shapes)])
    if re.fullmatch(_PROJECTION, kind) and len(shapes) <= 2:
        return list(_KERNEL_AND_BIAS[: len(shapes)])
    is_pair = len(shapes) == 2 and len(shapes[0]) > 1 and shapes[1] == shapes[0][-1:]
    is_kernel = len(shapes) == 1 and len(shapes[0]) > 1 and re.match("dense|conv|depthwise_conv", kind)
    if is_pair or is_kernel or (len(shapes) == 2 and kind.startswith("depthwise_conv")):
        return list(_KERNEL_AND_BIAS[: len(shapes)])
    return list(variables)


def _groups(arrays: Mapping[str, h5py.Dataset]) -> Iterator[Layer]:
    """Each group that contains arrays, as a layer."""
    members: dict[str, list[Weight]] = {}
    for name, item in arrays.items():
        group, _, last = name.rpartition("/")
        members.setdefault(group, []).append(Weight(last, name, _values(item)))
    for group, weights in members.items():
        yield Layer(group or "/", group, "", tuple(weights))


def _kind(name: str) -> str:
    return re.sub(r"_\d+$", "", name)


def _natural(path: str) -> list[str | int]:
    """A sort key that puts ``dense_2`` before ``dense_10``."""
    return [int(part) if part.isdigit() else part for part in _NUMBER.split(path)]


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
