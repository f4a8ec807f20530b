"""Tests of run folders: created once, found again, refused with the reason."""

import pytest

from utils.errors import RunError
from utils.files import write_text
from utils.run_folder.run import config_differences, open_run, start_run

CONFIG = {"task": "speech", "seed": 0, "model": {"name": "compact", "width": 256}}


def test_a_new_run_records_config_and_environment(tmp_path):
    run = start_run(tmp_path / "one", CONFIG)
    saved = run.config()
    assert {key: saved[key] for key in CONFIG} == CONFIG
    assert set(saved["environment"]["packages"]) >= {"keras", "numpy"}
    assert saved["environment"]["cores"] >= 1


def test_another_config_is_refused_by_key(tmp_path):
    start_run(tmp_path / "one", CONFIG)
    other = {**CONFIG, "model": {"name": "compact", "width": 320}}
    with pytest.raises(RunError, match=r"model\.width: 256 there, 320 asked"):
        start_run(tmp_path / "one", other)


def test_differences_leave_the_environment_and_the_search_aside():
    assert config_differences({**CONFIG, "environment": {"cores": 2}}, CONFIG) == []
    assert config_differences({**CONFIG, "search": {"joint_bonus": 4.0}}, CONFIG) == []
    assert config_differences(CONFIG, {**CONFIG, "seed": 1}) == [("seed", 0, 1)]


def test_a_folder_without_config_names_its_neighbours(tmp_path):
    start_run(tmp_path / "one", CONFIG).best_weights.touch()
    start_run(tmp_path / "begun", CONFIG)
    (tmp_path / "two").mkdir()
    with pytest.raises(RunError, match=r"no config\.yaml.*one"):
        open_run(tmp_path / "two")
    with pytest.raises(RunError, match=r"there is no such folder.*one"):
        open_run(tmp_path / "absent")
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match=r"it is a file.*one"):
        open_run(tmp_path / "file")
    with pytest.raises(RunError, match=r"no config\.yaml.*runs nearby: \S*one$"):  # the folder of the runs
        open_run(tmp_path)


def test_a_run_of_another_task_is_refused(tmp_path):
    start_run(tmp_path / "one", CONFIG)
    with pytest.raises(RunError, match="task 'speech', not 'language'"):
        open_run(tmp_path / "one", "language")


def test_a_damaged_config_is_refused_with_the_reason(tmp_path):
    run = start_run(tmp_path / "one", CONFIG)
    for content, message in (("task: [speech", "damaged"), ("", "empty or not a mapping")):
        write_text(run.config_file, content)
        with pytest.raises(RunError, match=f"{message}.*copy the run folder again"):
            open_run(tmp_path / "one")
