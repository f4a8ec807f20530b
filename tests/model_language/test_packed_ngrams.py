"""Tests of packed n-grams against the model before packing, of invalid settings and of damaged files."""

import numpy as np
import pytest

from model_language.array_files import save_arrays
from model_language.ngram.compact_tables import LEVELS
from model_language.ngram.kneser_ney import (
    BackoffModel,
    NgramTable,
    count_ngrams,
    estimate_counted,
    occurrences,
)
from model_language.ngram.packed import PackedNgrams, build_packed, pack, read_packed
from model_language.ngram.pruning import prune_to
from tests.support.made_up_text import made_up_text
from utils.errors import ConfigError, RunError, TrainingError

SIZE, SEEN = 48, 40  # the last ids never occur
ORDERS = (2, 3, 4)


def _stepped(values: np.ndarray) -> np.ndarray:
    """The values rounded to evenly spaced levels, as many as a code book has."""
    if not len(values):
        return values
    low, high = values.min(), values.max()
    step = (high - low) / (LEVELS - 2)
    return np.float32(low + step * np.round((values - low) / step))


def _with_few_values(tables: list[NgramTable]) -> list[NgramTable]:
    """Tables that a code book represents exactly; they are not distributions."""
    result = []
    for table in tables:
        backoffs = table.backoffs.copy()
        backoffs[backoffs != 0] = _stepped(backoffs[backoffs != 0])
        result.append(NgramTable(table.keys, _stepped(table.log_probs), backoffs))
    return result


@pytest.fixture(scope="module")
def estimated() -> dict[int, list[NgramTable]]:
    """Order → tables, pruned."""
    text, result = made_up_text(12_000, SEEN, seed=3), {}
    for order in ORDERS:
        grams = count_ngrams(text, order, SIZE)
        tables = estimate_counted(grams)
        result[order] = prune_to(tables, occurrences(grams), sum(len(t.keys) for t in tables[1:]) * 2 // 3)
    return result


@pytest.fixture(scope="module")
def arrays(estimated) -> dict[str, np.ndarray]:
    return pack(estimated[4])


def _histories(history: int) -> np.ndarray:
    """Histories of real text, of its beginnings, and random ones: (N, history)."""
    text = made_up_text(3000, SEEN, seed=4)
    rows = [np.zeros((1, history), np.int32)]
    for end in range(1, len(text)):
        row = text[max(end - history, 0) : end].copy()
        row[: row.nonzero()[0].max(initial=-1) + 1][: np.flatnonzero(row == 0).max(initial=-1) + 1] = 0
        rows.append(np.pad(row, (history - len(row), 0))[None])
    drawn = np.random.default_rng(5).integers(1, SIZE, (1000, history), dtype=np.int32)
    drawn[:300, : history // 2] = 0
    return np.unique(np.concatenate([*rows, drawn]), axis=0)


def _all_words(histories: np.ndarray) -> np.ndarray:
    return np.tile(np.arange(SIZE, dtype=np.int32), (len(histories), 1))


@pytest.mark.parametrize("order", ORDERS)
def test_with_few_values_it_equals_the_packed_model(estimated, order):
    tables = _with_few_values(estimated[order])
    packed, model = PackedNgrams(pack(tables)), BackoffModel(tables, SIZE)
    assert (packed.history, packed.size, packed.ngrams) == (order - 1, SIZE, sum(model.ngrams[1:]))
    histories = _histories(order - 1)
    found = packed.log_probs(histories, _all_words(histories))
    expected = model.log_probs(histories, _all_words(histories))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_a_file_round_trip(arrays, tmp_path):
    path = tmp_path / "ngrams.npz"
    save_arrays(path, arrays)
    read, packed = read_packed(path), PackedNgrams(arrays)
    histories = _histories(3)[::5]
    np.testing.assert_array_equal(
        read.log_probs(histories, _all_words(histories)), packed.log_probs(histories, _all_words(histories))
    )
    np.testing.assert_array_equal(read.unigrams, packed.unigrams)
    assert [file.name for file in tmp_path.iterdir()] == ["ngrams.npz"]


def _damaged(arrays: dict[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """One array missing, cut, or with impossible numbers."""
    kind, _, array = name.partition(" ")
    arrays = {key: value.copy() for key, value in arrays.items()}
    if kind == "lost":
        del arrays[array]
    elif kind == "cut":
        arrays[array] = arrays[array][:-3]
    else:
        arrays[array][:] = 255
    return arrays


@pytest.mark.parametrize(
    "damage",
    [
        *(f"lost {name}" for name in ("unigrams", "books", "weights", "by_rank", "counts_2", "steps_4")),
        *(f"cut {name}" for name in ("weights_1", "counts_3", "ranks_low_3", "ranks_high_2", "steps_4")),
        *(f"beyond {name}" for name in ("weights_1", "weights_3", "ranks_low_2", "ranks_high_3", "steps_3")),
    ],
)
def test_a_damaged_file_is_named(arrays, tmp_path, damage):
    path = tmp_path / "ngrams.npz"
    save_arrays(path, _damaged(arrays, damage))
    with pytest.raises(RunError, match=r"n-gram model .*ngrams\.npz"):
        read_packed(path)


def test_settings_without_a_model_are_refused():
    text = made_up_text(8000, SEEN, seed=7)
    for order in (1, 11):
        with pytest.raises(ConfigError, match=rf"order {order} .*model\.order"):
            build_packed(text, SIZE, order, 100)
    with pytest.raises(ConfigError, match=r"0 n-grams.*model\.ngrams"):
        build_packed(text, SIZE, 3, 0)
    for nothing in (np.zeros(0, np.int32), np.zeros(3, np.int32)):
        with pytest.raises(TrainingError, match="no training text"):
            build_packed(nothing, SIZE, 3, 100)
