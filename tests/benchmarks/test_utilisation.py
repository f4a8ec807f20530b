"""Tests of the benchmark of training steps: a real measurement of the smallest model on this machine."""

import pytest

from benchmarks.support.recipe_step import recipe_step
from benchmarks.training import utilisation
from tests.support.scripts import ROOT


def test_a_measurement(capsys, monkeypatch):
    monkeypatch.setattr(utilisation, "CPU_MATRIX", 64)
    figures = utilisation.measure("gated_cnn", "float32", steps=2, sizes=[64, 128])
    assert figures["device"] == "CPU" and figures["peak_teraflops"] > 0
    assert [batch["size"] for batch in figures["batches"]] == [64, 128]
    step = recipe_step(ROOT / "configs/language/pinyin_to_hanzi_network.yaml", ["training.xla=false"])
    for batch in figures["batches"]:
        rows = batch["size"] // 32
        operations = 6 * rows * step.multiply_accumulates(32)
        assert batch["teraflops"] * batch["seconds"] * 1e12 == pytest.approx(operations)
        assert batch["epoch_hours"] == pytest.approx(500 * 4096 / batch["rate"] / 3600)
        assert batch["recipe_hours"] == pytest.approx(20 * batch["epoch_hours"])
    utilisation._print({("gated_cnn", "float32"): figures})
    assert "training steps on CPU, Keras on tensorflow" in capsys.readouterr().out


def test_a_batch_that_fails_ends_the_list(monkeypatch, capsys):
    monkeypatch.setattr(utilisation, "CPU_MATRIX", 64)

    def too_large(function, *arguments):
        raise MemoryError("4 GiB are missing")

    monkeypatch.setattr(utilisation, "matrix_product_rate", lambda *_: 1.0)
    monkeypatch.setattr(utilisation, "_seconds", too_large)
    figures = utilisation.measure("gated_cnn", "float32", steps=1, sizes=[64, 128])
    assert figures["batches"] == [{"size": 64, "error": "MemoryError: 4 GiB are missing"}]
    utilisation._print({("gated_cnn", "float32"): figures})
    assert "MemoryError" in capsys.readouterr().out
