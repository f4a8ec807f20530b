"""Tests of the mean of runs: every weight, a run that other commands take, and runs that have no mean."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

from model_speech.acoustic_model import load_acoustic_model
from model_speech.average_weights import average, main
from model_speech.pack import pack
from tests.streaming.test_speech import SMALL, tiny_acoustic
from tests.support.tiny_runs import save_speech_run
from utils.errors import RunError
from utils.run_folder import checksums
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
    assert checksums.differences(target) == {}
    # Nothing of the training of the last run: its metrics and its other weights are not those of the mean.
    assert {path.name for path in target.iterdir()} == {
        "averaged.json", "best.weights.h5", "checksums", "config.yaml", "vocabulary",
    }  # fmt: skip
    assert json.loads((target / "averaged.json").read_text())["runs"] == [str(run) for run in runs]
    pack(target, tmp_path / "packed")


def test_a_mean_and_a_packed_model_have_their_only_weights(runs, tmp_path):
    """A mean of the last weights takes these, beside the last ones of a run whose training has ended."""
    trained = tmp_path / "trained"
    shutil.copytree(runs[0], trained)
    shutil.copyfile(runs[1] / "best.weights.h5", trained / "last.weights.h5")
    checksums.accept(trained)
    mean, again = tmp_path / "mean", tmp_path / "again"
    average([runs[0], runs[2]], mean, "best")
    pack(runs[2], tmp_path / "packed")
    average([mean, tmp_path / "packed", trained], again)
    models = [load_acoustic_model(source).model for source in (*runs, tmp_path / "packed")]
    columns = zip(*(model.weights for model in models), strict=True)
    for weight, given in zip(load_acoustic_model(again).model.weights, columns, strict=True):
        if "seed_generator" not in weight.path:
            a, b, c, d = (value.numpy() for value in given)
            np.testing.assert_allclose(weight.numpy(), ((a + c) / 2 + d + b) / 3, atol=1e-6)


def test_blocks_that_only_the_last_run_has_count_half(runs, tmp_path):
    config = dataclasses.replace(SMALL, blocks=SMALL.blocks + 1, front_blocks=(0, 1))
    deeper = save_speech_run(tmp_path / "deeper", tiny_acoustic(config, 5), config)
    average([runs[0], deeper], tmp_path / "mean", "best")
    mean, before, after = (
        {weight.path: weight.numpy() for weight in load_acoustic_model(run).model.weights}
        for run in (tmp_path / "mean", runs[0], deeper)
    )
    new = [path for path in after if path not in before and "seed_generator" not in path]
    assert {path.split("/")[0] for path in new} >= {
        "front_2_block_1_norm",
        f"block_{config.blocks}_mix",
    }
    for path in new:
        factor = 0.5 if path.endswith(("gamma", "beta")) else 1.0
        np.testing.assert_allclose(mean[path], factor * after[path], atol=1e-6, err_msg=path)
    np.testing.assert_allclose(
        mean["block_1_mix/kernel"],
        (before["block_1_mix/kernel"] + after["block_1_mix/kernel"]) / 2,
        atol=1e-6,
    )
    with pytest.raises(RunError, match="another model than that of"):
        average([deeper, runs[0]], tmp_path / "none", "best")


def test_runs_without_a_mean_are_named(runs, tmp_path):
    other = save_speech_run(tmp_path / "tokens", tiny_acoustic(SMALL), SMALL)
    tokens = load_acoustic_model(other).vocabulary.tokens
    Vocabulary((*tokens[:3], "ma5", *tokens[4:])).save(other / "vocabulary" / "acoustic.txt")
    output = ["--output", str(tmp_path / "mean"), "--weights", "best"]
    with pytest.raises(RunError, match="another vocabulary than that of") as caught:
        main([str(other), str(runs[0]), *output])
    assert caught.value.where == other
    with pytest.raises(RunError, match="a mean needs several runs"):
        main([str(runs[0]), *output])
    assert not (tmp_path / "mean").exists()
    with pytest.raises(RunError, match="already exists"):
        main([str(runs[0]), str(runs[1]), "--output", str(other), "--weights", "best"])
    assert (other / "best.weights.h5").is_file()
