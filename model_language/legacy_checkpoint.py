"""Reads the published transformer from a TensorFlow 1 checkpoint: ``model_20.index`` and ``model_20.data-…``.

The names are those of its graph: ``enc_embed`` and ``enc_pe`` (embedding and positions), ``num_blocks_N``
with three dense layers and a normalisation each, the two convolutions of the feed-forward network with a
normalisation, and the dense output. The variables of the optimiser are ignored.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from utils.errors import RunError

INDEX = ".index"
_SUPPORTED = (
    "supported: the transformer encoder of the published pinyin-to-hanzi project; train other networks again"
)
_ATTENTION = "multihead_attention"  # its feed-forward network has this name too
_BLOCK = re.compile(rf"num_blocks_\d+/{_ATTENTION}/dense/kernel")


def checkpoint_prefix(path: Path) -> Path | None:
    """``model_20`` of this prefix or of ``model_20.index``; None if there is no such checkpoint."""
    prefix = path.with_suffix("") if path.suffix == INDEX else path
    return prefix if Path(f"{prefix}{INDEX}").is_file() else None


def read_checkpoint(prefix: Path) -> list[Mapping[str, np.ndarray]]:
    """The arrays of each layer by name (``kernel``, ``bias``), as :func:`import_transformer` takes them.

    Raises:
        RunError: the checkpoint can't be read, or is that of another network.
    """
    import tensorflow as tf  # only TensorFlow reads its checkpoints

    try:
        reader = tf.train.load_checkpoint(str(prefix))
        known = set(reader.get_variable_to_shape_map())
        blocks = sum(
            f"num_blocks_{number}/{_ATTENTION}/dense/kernel" in known for number in range(len(known))
        )
        layers = list(_layer_names(blocks))
        missing = [name for layer in layers for name in layer.values() if name not in known]
        if not missing:
            return [{part: reader.get_tensor(name) for part, name in layer.items()} for layer in layers]
    except (tf.errors.OpError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise RunError(
            f"the checkpoint can't be read ({reason})",
            where=prefix,
            hint="both files of it are needed: .index and .data-00000-of-00001",
        ) from error
    raise RunError(
        f"not the published transformer: it has no variable '{missing[0]}'", where=prefix, hint=_SUPPORTED
    )


def _layer_names(blocks: int) -> Iterator[dict[str, str]]:
    """The variables of each layer, in the order of the network."""
    yield {"embeddings": "enc_embed/lookup_table"}
    yield {"embeddings": "enc_pe/lookup_table"}
    for block in range(blocks):
        scope = f"num_blocks_{block}/{_ATTENTION}"
        for layer in ("dense", "dense_1", "dense_2"):  # queries, keys, values
            yield _dense(f"{scope}/{layer}")
        yield _normalisation(scope)
    yield _dense(f"{_ATTENTION}/conv1d")
    yield _dense(f"{_ATTENTION}/conv1d_1")
    yield _normalisation(_ATTENTION)
    yield _dense("dense")


def _dense(name: str) -> dict[str, str]:
    return {"kernel": f"{name}/kernel", "bias": f"{name}/bias"}


def _normalisation(scope: str) -> dict[str, str]:
    return {"gamma": f"{scope}/ln/Variable_1", "beta": f"{scope}/ln/Variable"}
