"""Tests that keyword runs of earlier versions load and give the same logits as then.

``tests/support/earlier_keyword_runs.zip`` holds a tiny run of each model with random weights and statistics,
written before layers and modules were renamed; ``clips.npy`` (2, samples) int16, and beside each run the
``logits.npy`` (2, labels) that it gave for them.
"""

from pathlib import Path

import numpy as np
import pytest

from model_keyword.loading import load_keyword_model
from model_keyword.registry import MODELS
from tests.support.earlier_runs import unpack_runs

RUNS = "earlier_keyword_runs.zip"


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    return unpack_runs(RUNS, tmp_path_factory.mktemp("earlier"))


def test_there_is_a_run_of_each_model(runs):
    assert {path.name for path in runs.iterdir() if path.is_dir()} == set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_an_earlier_run_gives_the_same_logits(runs, name):
    keyword, clips = load_keyword_model(runs / name), np.load(runs / "clips.npy")
    expected = np.load(runs / name / "logits.npy")
    np.testing.assert_allclose(keyword.logits(clips), expected, rtol=1e-4, atol=1e-4)
