"""Tests that NaN and infinite values in the files of converters and language models are found at loading."""

from pathlib import Path

import numpy as np
import pytest

from model_language.array_files import save_arrays
from model_language.converters.noisy_channel import EmissionTables
from model_language.networks.causal_cnn_numpy import WEIGHTS_FILE, CausalCnnWeights
from model_language.networks.gated_cnn_file import load_weights
from model_language.ngram.packed import read_packed
from model_language.ngram.words import read_words
from utils.errors import RunError
from utils.files import read_arrays
from utils.run_folder.run import PRETRAINED, PRETRAINED_LANGUAGE_MODEL

LOADERS = {
    PRETRAINED / "ngrams.npz": read_packed,
    PRETRAINED / "words.npz": lambda path: read_words(path, 1.0),
    PRETRAINED / "emissions.npz": EmissionTables.load,
    PRETRAINED / "network.npz": load_weights,
    PRETRAINED_LANGUAGE_MODEL / WEIGHTS_FILE: CausalCnnWeights.load,
}


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("shipped", LOADERS, ids=lambda path: path.name)
def test_values_that_are_not_finite_are_found(shipped: Path, value: float, tmp_path: Path):
    arrays = read_arrays(shipped)
    names = [name for name, array in arrays.items() if array.dtype.kind == "f"]
    assert names
    for name in names:
        spoilt = arrays[name].copy()
        spoilt.flat[np.flatnonzero(np.isfinite(spoilt))[-1]] = value
        path = tmp_path / shipped.name
        save_arrays(path, {**arrays, name: spoilt})
        with pytest.raises(RunError, match=rf"not finite: 1 of {len(arrays)} arrays, e.g. {name}") as caught:
            LOADERS[shipped](path)
        assert caught.value.hint.startswith("copy the ") and str(path) in str(caught.value)


def test_only_gaps_may_be_minus_infinity(tmp_path: Path):
    arrays = read_arrays(PRETRAINED / "words.npz")
    name = next(name for name, array in arrays.items() if array.dtype.kind == "f")
    arrays[name].flat[0] = -np.inf
    save_arrays(tmp_path / "words.npz", arrays)
    with pytest.raises(RunError, match="not finite"):
        read_words(tmp_path / "words.npz", 1.0)
