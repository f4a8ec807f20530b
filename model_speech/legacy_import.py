"""Imports published DFCNN weights (a Keras 2 file) and the list of their tokens as a speech run folder.

The layers of the file are numbered in the order of the model: ``conv2d_1`` … ``conv2d_10``, each followed by
``batch_normalization_…``, then ``dense_1`` and ``dense_2``. The sizes of the model are read from the arrays.
Its features are 200 bins of the log spectrogram.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from model_speech.layers.normalisation import MaskedBatchNormalization
from model_speech.models.dfcnn import DfcnnConfig, build_dfcnn
from utils.backend.weights import save_weights
from utils.config import to_plain
from utils.errors import RunError, VocabularyError
from utils.features.settings import FeatureConfig, feature_bins
from utils.files import replacing_folder
from utils.mandarin.pinyin import is_syllable, normalise_syllable
from utils.run_folder.run import require_new_run, start_run
from utils.vocabulary import BLANK, SPACE, Vocabulary, first_few

Arrays = Mapping[str, np.ndarray]  # by name: kernel, bias; gamma, beta, moving_mean, moving_variance
CONVOLUTION, NORMALISATION, DENSE = "conv2d", "batch_normalization", "dense"
_FEATURES = FeatureConfig(kind="spectrogram", normalise="none")
_SUPPORTED = (
    "supported: the DFCNN with CTC (pairs of 3 x 3 convolutions, each with a batch normalisation, then two "
    "dense layers, on 200 bins); for the published transformer add --hanzi; train other models anew"
)


def import_dfcnn(
    layers: Sequence[tuple[str, Arrays]], weights_file: Path, tokens_file: Path, new_run: Path
) -> Vocabulary:
    """Write a speech run with these weights; the folder appears complete or not at all.

    Args:
        layers: kind (``conv2d``) and arrays of each layer, in the order of the model.
        weights_file: the file that they come from, for messages and the run's config.
        tokens_file: tokens of the classes, one per line, in the order of the original vocabulary.
        new_run: the folder to create.

    Returns:
        The vocabulary of the run.

    Raises:
        RunError: ``new_run`` exists, or the weights are not those of a DFCNN.
        VocabularyError: the token list can't be read or doesn't match the weights.
    """
    require_new_run(new_run)
    by_kind = {kind: [arrays for k, arrays in layers if k == kind] for kind, _ in layers}
    model_config, model = _read_model(by_kind, weights_file)
    vocabulary = read_tokens(tokens_file, model.output.shape[-1])
    config = {
        "task": "speech",
        "features": to_plain(_FEATURES),
        "model": to_plain(model_config),
        "imported": {"weights": str(weights_file), "tokens": str(tokens_file)},
    }
    with replacing_folder(new_run) as folder:
        run = start_run(folder, config)
        vocabulary.save(run.vocabulary("acoustic.txt"))
        save_weights(model, run.best_weights)
        save_weights(model, run.last_weights)
    return vocabulary


def read_tokens(path: Path, classes: int) -> Vocabulary:
    """Read the tokens of the published model's classes as a vocabulary: canonical syllables, the blank last.

    The published lists end with ``'_'`` and ``' '`` in either order; the last class is the blank in both
    cases.

    Args:
        path: file with one token per line.
        classes: number of classes of the weights.

    Raises:
        VocabularyError: the file can't be read, has another number of tokens, doesn't end with the blank, or
            has two spellings of one syllable.
    """
    tokens = list(Vocabulary.load(path).tokens)
    if len(tokens) != classes:
        ends = f"it begins with {first_few(tokens, 3)} and ends with {first_few(tokens[-3:])}"
        raise VocabularyError(
            f"the weights have {classes} classes, the list has {len(tokens)} tokens",
            where=path,
            hint=f"{ends}; use the list of that training, including '{SPACE}' and '{BLANK}': "
            "python -m data.vocabularies --as-seen acoustic makes it of the same data",
        )
    if tokens[-2:] == [BLANK, SPACE]:
        tokens[-2:] = [SPACE, BLANK]
    if tokens[-1] != BLANK:
        raise VocabularyError(
            f"the last token is {tokens[-1]!r}, not the blank '{BLANK}'",
            where=path,
            hint="the last class is the blank of CTC",
        )
    canonical = [normalise_syllable(token) if is_syllable(token) else token for token in tokens]
    first_line: dict[str, int] = {}
    for line, token in enumerate(canonical, start=1):
        if first_line.setdefault(token, line) != line:
            raise VocabularyError(
                f"'{tokens[line - 1]}' and '{tokens[first_line[token] - 1]}' are both '{token}'",
                where=f"{path}, lines {first_line[token]} and {line}",
                hint="spell one of the two differently",
            )
    return Vocabulary(tuple(canonical))


def _read_model(by_kind: Mapping[str, Sequence[Arrays]], path: Path) -> tuple[DfcnnConfig, keras.Model]:
    """Derive the config of the network from the arrays, and build it with them.

    Raises:
        RunError: these are not the arrays of a DFCNN.
    """
    counts = {kind: len(found) for kind, found in by_kind.items()}
    convolutions, dense = by_kind.get(CONVOLUTION, ()), by_kind.get(DENSE, ())
    expected = {CONVOLUTION: len(convolutions), NORMALISATION: len(convolutions), DENSE: 2}
    if not convolutions or counts != expected or len(convolutions) % 2:
        found = ", ".join(f"{count} {kind or 'unnamed'}" for kind, count in counts.items())
        raise RunError(f"not a DFCNN: {found or 'no layer'}", where=path, hint=_SUPPORTED)
    try:
        widths = [arrays["bias"].shape[0] for arrays in convolutions]
        inner, classes = dense[0]["bias"].shape[0], dense[1]["bias"].shape[0]
        flat = dense[0]["kernel"].shape[0]
        pooled = _pooled(flat, widths[-1], len(widths) // 2)
        config = DfcnnConfig(filters=tuple(widths[::2]), pooled=pooled, dense=inner)
        model = build_dfcnn(config, feature_bins(_FEATURES), classes)
        _set_weights(model, by_kind)
    except (KeyError, ValueError) as error:
        raise RunError(f"not a DFCNN's arrays ({error})", where=path, hint=_SUPPORTED) from error
    return config, model


def _pooled(flat: int, filters: int, cells: int) -> int:
    """Number of poolings after which a frame has ``flat`` values; each halves the bins."""
    for pooled in range(cells + 1):
        if (feature_bins(_FEATURES) >> pooled) * filters == flat:
            return pooled
    raise ValueError(f"the dense layer takes {flat} values, which no number of poolings gives")


def _set_weights(model: keras.Model, by_kind: Mapping[str, Sequence[Arrays]]) -> None:
    """Copy the arrays into the network.

    Raises:
        ValueError: an array has another shape.
    """
    for layer, arrays in _pairs(model, by_kind):
        for variable in layer.weights:
            found, expected = arrays[variable.name].shape, tuple(variable.shape)
            if found != expected:
                raise ValueError(f"{layer.name}/{variable.name} is {found}, not {expected}")
        layer.set_weights([arrays[variable.name] for variable in layer.weights])


def _pairs(
    model: keras.Model, by_kind: Mapping[str, Sequence[Arrays]]
) -> list[tuple[keras.layers.Layer, Arrays]]:
    """The layers with weights of the model, each with its arrays.

    Raises:
        ValueError: there are more or fewer layers of a kind.
    """
    kinds = {
        CONVOLUTION: keras.layers.Conv2D,
        NORMALISATION: MaskedBatchNormalization,
        DENSE: keras.layers.Dense,
    }
    pairs: list[tuple[Any, Any]] = []
    for kind, layer_class in kinds.items():
        layers = [layer for layer in model.layers if isinstance(layer, layer_class)]
        pairs += zip(layers, by_kind[kind], strict=True)
    return pairs
