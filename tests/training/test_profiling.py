"""Tests of training/profiling.py: a TensorBoard profile of a window of steps; the training is unchanged."""

from pathlib import Path

import numpy as np
import pytest
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from tests.training.test_loop import LineTask, run_folder
from training.loop import TrainingConfig, train
from training.optimiser import OptimiserConfig
from training.profiling import StepProfiler
from utils.errors import ConfigError


def recorded_steps(profile: Path) -> list[int]:
    """The numbers on the events ``train`` of a profile."""
    planes = xplane_pb2.XSpace.FromString(profile.read_bytes()).planes
    return sorted(
        stat.int64_value or stat.uint64_value
        for plane in planes
        for line in plane.lines
        for event in line.events
        if plane.event_metadata[event.metadata_id].name == "train"
        for stat in event.stats
        if plane.stat_metadata[stat.metadata_id].name == "step_num"
    )


@pytest.mark.parametrize("text", ["120", "0-5", "9-3", "a-b", "1-2-3", "-5", "1 - 2"])
def test_an_invalid_window_is_refused_with_an_example(text):
    with pytest.raises(ConfigError, match=r"training\.profile is .* such as 120-180"):
        TrainingConfig(profile=text)


def test_the_steps_of_the_window_are_in_the_profile_and_the_weights_are_the_same(tmp_path):
    plain, profiled = LineTask(), LineTask()
    train(plain, run_folder(tmp_path, "plain"), TrainingConfig(epochs=2), OptimiserConfig())
    run = run_folder(tmp_path, "profiled")
    train(profiled, run, TrainingConfig(epochs=2, profile="3-5"), OptimiserConfig())
    for left, right in zip(plain.model.get_weights(), profiled.model.get_weights(), strict=True):
        np.testing.assert_array_equal(left, right)
    (profile,) = (run.logs / "plugins" / "profile").glob("*/*.xplane.pb")
    assert recorded_steps(profile) == [3, 4, 5]
    assert not (tmp_path / "plain" / "logs" / "plugins").exists()


def test_a_window_after_the_end_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="profile=120-180, but the training has 96 steps"):
        StepProfiler(range(120, 181), 96, tmp_path)
