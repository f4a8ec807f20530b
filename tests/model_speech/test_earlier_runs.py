"""Tests that speech runs of earlier versions load and give the same logits as then.

``tests/support/earlier_speech_runs.zip`` holds a tiny run of each acoustic model with random weights and
statistics, written before layers and modules were renamed. Its ``example.npz`` has two utterances (``long``,
``short``), the ``logits`` (2, rows, classes) that the model gave for a batch of both, and their ``lengths``.
"""

from pathlib import Path

import numpy as np
import pytest

from model_speech.acoustic_model import load_acoustic_model
from model_speech.causal import load_causal_model
from model_speech.registry import MODELS
from tests.support.earlier_runs import unpack_runs

RUNS = "earlier_speech_runs.zip"


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    return unpack_runs(RUNS, tmp_path_factory.mktemp("earlier"))


def test_there_is_a_run_of_each_model(runs):
    assert {path.name for path in runs.iterdir()} == set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_an_earlier_run_gives_the_same_logits(runs, name):
    acoustic, example = load_acoustic_model(runs / name), np.load(runs / name / "example.npz")
    logits, lengths = acoustic.logits([example["long"], example["short"]])
    np.testing.assert_array_equal(lengths, example["lengths"])
    for row, expected, length in zip(logits, example["logits"], lengths, strict=True):
        np.testing.assert_allclose(row[:length], expected[:length], atol=1e-5)


def test_the_causal_network_of_an_earlier_run_gives_the_same_logits(runs):
    run = runs / "compact_streaming"
    model, example = load_causal_model(run), np.load(run / "example.npz")
    frames = example["long"]  # (45, bins): zero frames follow up to a whole row, and then for the look-ahead
    frames = np.pad(frames, ((0, -len(frames) % model.time_stride + model.look_ahead), (0, 0)))
    logits = np.asarray(model.network(frames[None]))[0, model.delay :]
    np.testing.assert_allclose(logits, example["logits"][0, : len(logits)], atol=1e-5)
