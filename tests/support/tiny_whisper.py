"""A Whisper of random weights, too small to recognise anything, in the three published file formats."""

import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

BLOCKS, WIDTH, MEL_BINS = 2, 64, 80


def state() -> dict[str, np.ndarray]:
    """Arrays by OpenAI's names, float32, the same in every call."""
    rng = np.random.default_rng(7)

    def array(*shape: int) -> np.ndarray:
        return rng.normal(0, 0.15, shape).astype(np.float32)

    arrays = {"conv1.weight": array(WIDTH, MEL_BINS, 3), "conv1.bias": array(WIDTH)}
    arrays |= {"conv2.weight": array(WIDTH, WIDTH, 3), "conv2.bias": array(WIDTH)}
    for index in range(BLOCKS):
        name = f"blocks.{index}"
        for part in ("query", "key", "value", "out"):
            arrays[f"{name}.attn.{part}.weight"] = array(WIDTH, WIDTH)
            if part != "key":
                arrays[f"{name}.attn.{part}.bias"] = array(WIDTH)
        arrays |= {f"{name}.mlp.0.weight": array(4 * WIDTH, WIDTH), f"{name}.mlp.0.bias": array(4 * WIDTH)}
        arrays |= {f"{name}.mlp.2.weight": array(WIDTH, 4 * WIDTH), f"{name}.mlp.2.bias": array(WIDTH)}
        for norm in ("attn_ln", "mlp_ln"):
            arrays |= {f"{name}.{norm}.weight": 1 + array(WIDTH), f"{name}.{norm}.bias": array(WIDTH)}
    return arrays | {"ln_post.weight": 1 + array(WIDTH), "ln_post.bias": array(WIDTH)}


def write_openai(path: Path) -> None:
    """A ``.pt`` file; needs PyTorch."""
    import torch

    tensors = {f"encoder.{name}": torch.from_numpy(array) for name, array in state().items()}
    tensors["decoder.ln.weight"] = torch.zeros(WIDTH)
    torch.save({"dims": {"n_audio_layer": BLOCKS}, "model_state_dict": tensors}, path)


HUGGING_FACE = {
    "attn.query": "self_attn.q_proj",
    "attn.key": "self_attn.k_proj",
    "attn.value": "self_attn.v_proj",
    "attn.out": "self_attn.out_proj",
    "attn_ln": "self_attn_layer_norm",
    "mlp_ln": "final_layer_norm",
    "mlp.0": "fc1",
    "mlp.2": "fc2",
    "ln_post": "layer_norm",
    "blocks": "layers",
}


def hugging_face_names() -> dict[str, np.ndarray]:
    """The arrays by the names of Hugging Face, with one of the decoder."""
    arrays = {}
    for name, array in state().items():
        for ours, theirs in HUGGING_FACE.items():
            name = name.replace(ours, theirs)
        arrays[f"model.encoder.{name}"] = array
    return arrays | {"model.decoder.layer_norm.weight": np.zeros(WIDTH, np.float32)}


def write_hugging_face(folder: Path, parts: int = 1) -> None:
    """A folder with ``model.safetensors``, or with so many numbered parts."""
    from safetensors.numpy import save_file

    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "whisper"}))
    arrays = list(hugging_face_names().items())
    for part in range(parts):
        number = f"-{part + 1:05}-of-{parts:05}" if parts > 1 else ""
        save_file(dict(arrays[part::parts]), folder / f"model{number}.safetensors")


def write_faster_whisper(folder: Path, dtype: str = "float32") -> None:
    """A folder with CTranslate2's ``model.bin``, whose matrices have the type float32, float16 or int8."""
    folder.mkdir()
    variables = dict(_ctranslate2(state(), dtype))
    variables["decoder/layer_norm/gamma"] = np.ones(WIDTH, np.float32)
    variables["encoder/num_heads"] = np.array(1, np.int16)
    text = struct.pack("<I", 6) + _text("WhisperSpec") + struct.pack("<II", 3, len(variables))
    for name, array in variables.items():
        code = {"float32": 0, "int8": 1, "int16": 2, "float16": 4}[array.dtype.name]
        shape = struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)
        text += _text(name) + shape + struct.pack("<BI", code, array.nbytes) + array.tobytes()
    (folder / "model.bin").write_bytes(text)


def _ctranslate2(arrays: Mapping[str, np.ndarray], dtype: str) -> Iterator[tuple[str, np.ndarray]]:
    def layer(name: str, weight: np.ndarray, bias: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
        if dtype == "int8" and weight.ndim == 2:
            scale = 127 / np.abs(weight).max(axis=1)
            yield f"{name}/weight", np.rint(weight * scale[:, None]).astype(np.int8)
            yield f"{name}/weight_scale", scale
        else:
            yield f"{name}/weight", weight.astype(np.float32 if dtype == "int8" else dtype)
        yield f"{name}/bias", bias

    def norm(name: str, theirs: str) -> Iterator[tuple[str, np.ndarray]]:
        yield f"{name}/gamma", arrays[f"{theirs}.weight"]
        yield f"{name}/beta", arrays[f"{theirs}.bias"]

    for number in (1, 2):
        yield from layer(
            f"encoder/conv{number}", arrays[f"conv{number}.weight"], arrays[f"conv{number}.bias"]
        )
    for index in range(BLOCKS):
        name, theirs = f"encoder/layer_{index}", f"blocks.{index}"
        attention = f"{theirs}.attn"
        joined = [arrays[f"{attention}.{part}.weight"] for part in ("query", "key", "value")]
        biases = [
            arrays.get(f"{attention}.{part}.bias", np.zeros(WIDTH, np.float32))
            for part in ("query", "key", "value")
        ]
        yield from norm(f"{name}/self_attention/layer_norm", f"{theirs}.attn_ln")
        yield from layer(f"{name}/self_attention/linear_0", np.concatenate(joined), np.concatenate(biases))
        yield from layer(
            f"{name}/self_attention/linear_1",
            arrays[f"{attention}.out.weight"],
            arrays[f"{attention}.out.bias"],
        )
        yield from norm(f"{name}/ffn/layer_norm", f"{theirs}.mlp_ln")
        for number, mlp in ((0, "mlp.0"), (1, "mlp.2")):
            weight, bias = arrays[f"{theirs}.{mlp}.weight"], arrays[f"{theirs}.{mlp}.bias"]
            yield from layer(f"{name}/ffn/linear_{number}", weight, bias)
    yield from norm("encoder/layer_norm", "ln_post")


def _text(text: str) -> bytes:
    return struct.pack("<H", len(text) + 1) + text.encode() + b"\0"
