"""Reads the encoder of a published Whisper model: a folder or file in, its size and arrays by name out.

Three formats: a Hugging Face folder (``model.safetensors``), a file of OpenAI (``base.pt``) and a folder of
faster-whisper (CTranslate2's ``model.bin``). The arrays have the names of the layers in
`model_speech.models.whisper` and the layout of Keras.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from utils.errors import RunError

Arrays = dict[str, np.ndarray]
_HEAD_CHANNELS = 64  # of an attention head, in every size
_READABLE = (
    "a Hugging Face folder with model.safetensors, a .pt file of OpenAI, or a folder of "
    "faster-whisper with model.bin"
)


@dataclass(frozen=True)
class WhisperEncoder:
    """The encoder of a published model.

    Attributes:
        blocks, width, heads: its size.
        mel_bins: values of a feature frame.
        layers: the arrays of each layer by its name in the Keras model, in the order of Keras, float32.
    """

    blocks: int
    width: int
    heads: int
    mel_bins: int
    layers: Mapping[str, list[np.ndarray]]


def read_whisper(source: Path) -> WhisperEncoder:
    """Read a published model.

    Args:
        source: folder or file, see above.

    Raises:
        RunError: there is no such file, it has another format or is damaged, or it is no Whisper model.
    """
    arrays = _find_reader(source)(source)
    try:
        width, mel_bins, _ = arrays["conv1.weight"].shape
        blocks = sum(name.endswith(".mlp.0.weight") for name in arrays)
        layers = _keras_layers(arrays, blocks)
    except (KeyError, ValueError) as error:
        raise RunError(f"not a Whisper model: {error} is missing", where=source, hint=_READABLE) from error
    if width % _HEAD_CHANNELS:
        raise RunError(f"not a Whisper model: its width is {width}", where=source, hint=_READABLE)
    return WhisperEncoder(blocks, width, width // _HEAD_CHANNELS, mel_bins, layers)


def _find_reader(source: Path) -> Callable[[Path], Arrays]:
    if source.is_dir():
        if (source / "model.bin").is_file():
            return _read_ctranslate2
        if any(source.glob("model*.safetensors")):
            return _read_hugging_face
        raise RunError("it has neither model.safetensors nor model.bin", where=source, hint=_READABLE)
    if not source.is_file():
        raise RunError("no such file or folder", where=source, hint=_READABLE)
    if source.suffix == ".pt":
        return _read_openai
    raise RunError(f"a '{source.suffix or source.name}' file can't be imported", where=source, hint=_READABLE)


def _read_openai(source: Path) -> Arrays:
    """Arrays by OpenAI's names without ``encoder.``; only tensors are unpickled, no other object."""
    try:
        import torch  # only for this format
    except ImportError as error:
        hint = "pip install torch, or import the Hugging Face folder of the same model"
        raise RunError("a .pt file needs PyTorch", where=source, hint=hint) from error
    try:
        state = torch.load(source, map_location="cpu", weights_only=True)["model_state_dict"]
    except Exception as error:  # torch raises its own, pickle's, zipfile's and KeyError
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RunError(f"not a Whisper file of OpenAI ({reason})", where=source, hint=_READABLE) from error
    prefix = "encoder."
    return {
        name.removeprefix(prefix): tensor.float().numpy()
        for name, tensor in state.items()
        if name.startswith(prefix)
    }


_HUGGING_FACE_NAMES = (
    ("layers.", "blocks."),
    ("self_attn_layer_norm", "attn_ln"),
    ("self_attn.q_proj", "attn.query"),
    ("self_attn.k_proj", "attn.key"),
    ("self_attn.v_proj", "attn.value"),
    ("self_attn.out_proj", "attn.out"),
    ("final_layer_norm", "mlp_ln"),
    ("fc1", "mlp.0"),
    ("fc2", "mlp.2"),
)


def _read_hugging_face(source: Path) -> Arrays:
    """Arrays of ``model.safetensors``, or of its numbered parts, by OpenAI's names."""
    arrays = {}
    for path in sorted(source.glob("model*.safetensors")):
        try:
            with safe_open(path, framework="numpy") as file:
                for name in file.keys():  # noqa: SIM118 (not a dict)
                    _, is_encoder, own = f".{name}".partition(".encoder.")
                    if is_encoder:
                        arrays[_renamed(own)] = file.get_tensor(name).astype(np.float32)
        except (SafetensorError, TypeError) as error:  # TypeError: a type that NumPy lacks
            raise RunError(f"it can't be read ({error})", where=path, hint="download it again") from error
    return arrays


def _renamed(name: str) -> str:
    for theirs, ours in _HUGGING_FACE_NAMES:
        name = name.replace(theirs, ours)
    return "ln_post" + name.removeprefix("layer_norm") if name.startswith("layer_norm") else name


def _read_ctranslate2(source: Path) -> Arrays:
    """Arrays of ``model.bin`` by OpenAI's names."""
    path = source / "model.bin"
    try:
        stored = dict(_ctranslate2_variables(path.read_bytes()))
    except (struct.error, ValueError, KeyError, UnicodeDecodeError) as error:
        raise RunError(f"not a file of CTranslate2 ({error})", where=path, hint=_READABLE) from error
    arrays: Arrays = {}
    for name, array in stored.items():
        if not name.startswith("encoder/") or name.endswith("_scale") or not array.ndim:
            continue
        values = array.astype(np.float32)
        scale = stored.get(f"{name}_scale")
        if scale is not None:
            values /= np.reshape(scale, (-1, *[1] * (values.ndim - 1)))
        arrays |= _as_openai(name.removeprefix("encoder/"), values)
    return arrays


_CTRANSLATE2_TYPES = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}


def _ctranslate2_variables(data: bytes) -> Iterator[tuple[str, np.ndarray]]:
    """The variables of a file: name, shape, type and data of each, after version, name and revision."""
    position = 0

    def number(kind: str) -> int:
        nonlocal position
        (value,) = struct.unpack_from(f"<{kind}", data, position)
        position += struct.calcsize(f"<{kind}")
        return value

    def text() -> str:
        nonlocal position
        length = number("H")  # with a closing zero byte
        position += length
        return data[position - length : position - 1].decode()

    number("I"), text(), number("I")
    for _ in range(number("I")):
        name, shape = text(), [number("I") for _ in range(number("B"))]
        dtype, size = np.dtype(_CTRANSLATE2_TYPES[number("B")]), number("I")
        if position + size > len(data):
            raise ValueError(f"it ends within '{name}'")
        yield name, np.frombuffer(data, dtype, size // dtype.itemsize, position).reshape(shape)
        position += size


def _as_openai(name: str, values: np.ndarray) -> Arrays:
    """A variable of CTranslate2; it stores the projections of query, key and value as one."""
    name = name.replace("layer_norm/gamma", "ln/weight").replace("layer_norm/beta", "ln/bias")
    parts = name.replace("layer_", "blocks.", 1).split("/")
    if parts[0] == "ln":
        return {f"ln_post.{parts[1]}": values}
    if parts[1] == "self_attention" and parts[2] == "linear_0":
        thirds = zip(("query", "key", "value"), np.split(values, 3), strict=True)
        return {f"{parts[0]}.attn.{part}.{parts[3]}": third for part, third in thirds}
    layer = {
        "self_attention/ln": "attn_ln",
        "self_attention/linear_1": "attn.out",
        "ffn/ln": "mlp_ln",
        "ffn/linear_0": "mlp.0",
        "ffn/linear_1": "mlp.2",
    }.get("/".join(parts[1:3]))
    return {f"{parts[0]}.{layer}.{parts[3]}": values} if layer else {name.replace("/", "."): values}


def _keras_layers(arrays: Arrays, blocks: int) -> dict[str, list[np.ndarray]]:
    """OpenAI's arrays by layers of the Keras model; raises KeyError for one that is missing."""

    def both(name: str) -> list[np.ndarray]:
        return [arrays[f"{name}.weight"].T, arrays[f"{name}.bias"]]

    layers = {f"conv_{number}": both(f"conv{number}") for number in (1, 2)}
    for index in range(blocks):
        ours, theirs = f"block_{index + 1}", f"blocks.{index}"
        attention = f"{theirs}.attn"
        layers |= {
            f"{ours}_attention_norm": both(f"{theirs}.attn_ln"),
            f"{ours}_attention": [
                *both(f"{attention}.query"),
                arrays[f"{attention}.key.weight"].T,
                *both(f"{attention}.value"),
                *both(f"{attention}.out"),
            ],
            f"{ours}_feed_forward_norm": both(f"{theirs}.mlp_ln"),
            f"{ours}_hidden": both(f"{theirs}.mlp.0"),
            f"{ours}_output": both(f"{theirs}.mlp.2"),
        }
    return layers | {"encoder_norm": both("ln_post")}
