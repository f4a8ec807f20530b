"""Tests of the mean of runs: every weight, a run that other commands take, and runs that have no mean."""

import json

import numpy as np
import pytest

from model_speech.acoustic_model import load_acoustic_model
from model_speech.average import main
from model_speech.pack import pack
from tests.streaming.test_speech import SMALL, tiny_acoustic
from tests.support.tiny_runs import save_speech_run
from utils.errors import RunError
from utils.run_folder.checksums import differences
from utils.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    saved = [save_speech_run(folder / str(seed), tiny_acoustic(SMALL, seed), SMALL) for seed in (0, 1, 2)]
    (saved[-1] / "metrics.json").write_text("{}")
    return saved


def test_each_weight_is_the_mean(runs, tmp_path, capsys):
    target = tmp_path / "mean"
    assert main([*map(str, runs), "--output", str(target), "--weights", "best"]) == 0
    assert "the mean of 3 runs" in capsys.readouterr().out
    found = load_acoustic_model(target).model
    models = [load_acoustic_model(run).model for run in runs]
    for weight, *given in zip(found.weights, *(model.weights for model in models), strict=True):
        if "seed_generator" not in weight.path:
            expected = np.mean([value.numpy() for value in given], axis=0)
            np.testing.assert_allclose(weight.numpy(), expected, atol=1e-6)
    assert differences(target) == {}
    # Nothing of the training of the last run: its metrics and its other weights are not those of the mean.
    assert {path.name for path in target.iterdir()} == {
        "averaged.json", "best.weights.h5", "checksums", "config.yaml", "vocabulary",
    }  # fmt: skip
    assert json.loads((target / "averaged.json").read_text())["runs"] == [str(run) for run in runs]
    pack(target, tmp_path / "packed")


def test_runs_without_a_mean_are_named(runs, tmp_path):
    other = save_speech_run(tmp_path / "tokens", tiny_acoustic(SMALL), SMALL)
    tokens = load_acoustic_model(other).vocabulary.tokens
    Vocabulary((*tokens[:3], "ma5", *tokens[4:])).save(other / "vocabulary" / "acoustic.txt")
    output = ["--output", str(tmp_path / "mean"), "--weights", "best"]
    with pytest.raises(RunError, match="another vocabulary than that of") as caught:
        main([str(other), str(runs[0]), *output])
    assert caught.value.where == other
    with pytest.raises(RunError, match="one run has no mean"):
        main([str(runs[0]), *output])
    assert not (tmp_path / "mean").exists()
