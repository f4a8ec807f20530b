"""Imports the weights of the published transformer (a Keras 2 file) and its token lists as a language run.

The file has its arrays in this order: the embedding and the positions; for each block the dense layers of
queries, keys and values and a layer normalisation; the two layers of the feed-forward network (dense, or
convolutions of width 1) and a layer normalisation; the dense layer of the output. The sizes are read from the
arrays.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import keras
import numpy as np

from model_language.networks.published_transformer import (
    PublishedTransformerConfig,
    build_published_transformer,
)
from model_language.vocabulary.lexicon import build_lexicon
from model_language.vocabulary.symbols import PAD_ID, UNKNOWN_ID, Symbols
from utils.backend.weights import save_weights
from utils.config import to_plain
from utils.errors import ConfigError, RunError, VocabularyError
from utils.files import replacing_folder
from utils.mandarin.pinyin import is_syllable, normalise_syllable
from utils.run_folder.run import require_new_run, start_run
from utils.vocabulary import PAD, UNKNOWN, Vocabulary, first_few

Arrays = Mapping[str, np.ndarray]  # by name: kernel, bias; gamma, beta; embeddings
EMBEDDING, DENSE, NORMALISATION = "embedding", "dense", "normalisation"
_BEFORE_BLOCKS = (EMBEDDING, EMBEDDING)
_BLOCK = (DENSE, DENSE, DENSE, NORMALISATION)
_AFTER_BLOCKS = (DENSE, DENSE, NORMALISATION, DENSE)
_SUPPORTED = (
    "only the published transformer encoder with learned positions is supported: attention without an output "
    "projection, one feed-forward network after the last block; train other networks again"
)


def import_transformer(
    layers: Sequence[Arrays], weights_file: Path, pinyin_file: Path, hanzi_file: Path, new_run: Path
) -> Symbols:
    """Create a language run from the weights, the whole folder or nothing.

    The original has no token for unknown input. The token ``<unk>`` is inserted as the second one of both
    vocabularies: a zero vector in the embedding, and a class that never wins in the output.

    Args:
        layers: arrays of each layer of the file, in its order, without layers that have no weights.
        weights_file: the file, for messages and the run's config.
        pinyin_file: the input tokens, one per line, padding first.
        hanzi_file: the output tokens, one per line, padding first.
        new_run: the folder to create.

    Returns:
        The vocabularies of the run, and its lexicon.

    Raises:
        RunError: ``new_run`` exists, or the weights are of another network.
        VocabularyError: a list cannot be read or does not belong to the weights.
    """
    require_new_run(new_run)
    config, inputs, classes = _geometry(layers, weights_file)
    symbols = Symbols(
        _read_tokens(pinyin_file, inputs, syllables=True),
        _read_tokens(hanzi_file, classes, syllables=False),
        build_lexicon(),
    )
    model = build_published_transformer(config, len(symbols.pinyin), len(symbols.hanzi))
    _set_weights(model, layers, weights_file)
    values = {
        "task": "language",
        "model": to_plain(config),
        "imported": {"weights": str(weights_file), "tokens": str(pinyin_file), "hanzi": str(hanzi_file)},
    }
    with replacing_folder(new_run) as folder:
        run = start_run(folder, values)
        symbols.save(run.path)
        save_weights(model, run.best_weights)
        save_weights(model, run.last_weights)
    return symbols


def _read_tokens(path: Path, size: int, syllables: bool) -> Vocabulary:
    """The tokens of an original list as a vocabulary: padding, unknown, then the others in their order.

    Raises:
        VocabularyError: the file cannot be read, has another number of tokens, does not begin with padding,
            or has two tokens for the same syllable.
    """
    tokens = list(Vocabulary.load(path).tokens)
    if len(tokens) != size:
        raise VocabularyError(
            f"the weights have {size} tokens, the list has {len(tokens)}",
            where=path,
            hint=f"it begins with {first_few(tokens, 3)}; give the list of the same training: "
            "python -m data.vocabularies --as-seen makes it of the same data",
        )
    if tokens[0].lower() != PAD:
        raise VocabularyError(
            f"the first token is {tokens[0]!r}, not the padding {PAD.upper()!r}",
            where=path,
            hint="give the unchanged list of the training, padding first",
        )
    if syllables:
        tokens = [normalise_syllable(token) if is_syllable(token) else token for token in tokens]
    try:
        return Vocabulary((PAD, UNKNOWN, *tokens[1:]))
    except VocabularyError as error:
        raise VocabularyError(
            error.message,
            where=path,
            hint="two spellings of one syllable count as the same token: change one of them",
        ) from error


def _geometry(layers: Sequence[Arrays], path: Path) -> tuple[PublishedTransformerConfig, int, int]:
    """The config of the network with these arrays, and the sizes of its two vocabularies.

    Raises:
        RunError: the arrays are not those of the published transformer.
    """
    kinds = tuple(_kind(arrays) for arrays in layers)
    fixed = len(_BEFORE_BLOCKS) + len(_AFTER_BLOCKS)
    blocks = (len(kinds) - fixed) // len(_BLOCK)
    if blocks < 0 or kinds != (*_BEFORE_BLOCKS, *(_BLOCK * blocks), *_AFTER_BLOCKS):
        raise RunError(
            f"not the published transformer: its layers are {first_few(kinds)}", where=path, hint=_SUPPORTED
        )
    embedding, positions = (next(iter(arrays.values())) for arrays in layers[:2])
    inner, output = layers[-4]["bias"].shape[0], layers[-1]["bias"].shape[0]
    width = embedding.shape[1]
    try:
        config = PublishedTransformerConfig(
            width=width, blocks=blocks, feed_forward=inner // width, positions=positions.shape[0]
        )
    except ConfigError as error:
        raise RunError(
            f"not the published transformer ({error.message})", where=path, hint=_SUPPORTED
        ) from error
    return config, embedding.shape[0], output


def _kind(arrays: Arrays) -> str:
    """The kind of a layer with these arrays; its shapes if the transformer has no such layer."""
    names = frozenset(arrays)
    if names == {"kernel", "bias"}:
        return DENSE
    if names == {"gamma", "beta"}:
        return NORMALISATION
    if len(names) == 1 and next(iter(arrays.values())).ndim == 2:
        return EMBEDDING
    return ", ".join(f"{name} {array.shape}" for name, array in arrays.items())


def _set_weights(model: keras.Model, layers: Sequence[Arrays], path: Path) -> None:
    """Copy the arrays in their order, with a row or column for ``<unk>``.

    Raises:
        RunError: the shape of an array does not fit the network.
    """
    targets = [variable for layer in model.layers for variable in layer.trainable_variables]
    arrays = [array for arrays in layers for array in _values(arrays)]
    arrays[0] = np.insert(arrays[0], UNKNOWN_ID, 0.0, axis=0)
    arrays[0][PAD_ID] = 0.0  # the original ignores its embedding of padding
    arrays[-2] = np.insert(arrays[-2], UNKNOWN_ID, 0.0, axis=1)
    arrays[-1] = np.insert(arrays[-1], UNKNOWN_ID, arrays[-1].min(), axis=0)
    for variable, array in zip(targets, arrays, strict=True):
        if tuple(variable.shape) != array.shape:
            shapes = f"{variable.path} is {array.shape}, not {tuple(variable.shape)}"
            raise RunError(f"not the published transformer ({shapes})", where=path, hint=_SUPPORTED)
        variable.assign(array)


def _values(arrays: Arrays) -> list[np.ndarray]:
    """Kernel before bias, gamma before beta; the kernel of a convolution of width 1 as a matrix."""
    if "gamma" in arrays:
        return [arrays["gamma"], arrays["beta"]]
    if "kernel" in arrays:
        kernel = arrays["kernel"]
        return [kernel[0] if kernel.ndim == 3 and kernel.shape[0] == 1 else kernel, arrays["bias"]]
    return list(arrays.values())
