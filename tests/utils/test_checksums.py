"""Tests of the checksums of a run folder: changes are named; a kill does not make an intact run fail."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import inspect_model
from utils.errors import RunError
from utils.files import write_text
from utils.run_folder import checksums
from utils.run_folder.checksums import verified
from utils.run_folder.run import create_run, open_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run folder with two files that other commands read, and a log."""
    folder = create_run(tmp_path / "run", {"task": "speech"})
    write_text(folder.vocabulary("acoustic.txt"), "a1\nb2\n")
    write_text(folder.metrics, "{}\n")
    write_text(folder.log, "begun\n")
    return folder.path


def listed(run: Path) -> list[str]:
    return [line.split("  ")[1] for line in (run / "checksums").read_text().splitlines()]


def test_the_list_is_sorted_and_sha256sum_reads_it(run):
    assert listed(run) == ["config.yaml", "metrics.json", "vocabulary/acoustic.txt"]
    subprocess.run(
        ["sha256sum", "--check", "--strict", "checksums"], cwd=run, check=True, capture_output=True
    )


def test_a_file_written_again_or_removed_is_recorded(run):
    write_text(run / "metrics.json", "{} \n")
    assert verified(run / "metrics.json") == run / "metrics.json"
    (run / "metrics.json").unlink()
    write_text(run / "vocabulary" / "acoustic.txt", "b2\n")
    assert listed(run) == ["config.yaml", "vocabulary/acoustic.txt"]


@pytest.mark.parametrize("name", ["config.yaml", "metrics.json", "vocabulary/acoustic.txt"])
def test_a_changed_file_is_named(run, name):
    content = (run / name).read_bytes()
    (run / name).write_bytes(bytes([content[0] ^ 1]) + content[1:])
    with pytest.raises(RunError, match=f"not the file that was written.*{name}.*accept {run}"):
        verified(run / name)
    assert checksums.differences(run) == {name: checksums.Mismatch.CHANGED}


def test_files_of_other_kinds_and_folders_are_not_covered(run):
    (run / "train.log").write_text("changed")
    (run / "export").mkdir()
    (run / "export" / "labels.txt").write_text("yes\n")
    (run.parent / "labels.txt").write_text("yes\n")
    for path in (
        run / "train.log",
        run / "export" / "labels.txt",
        run.parent / "labels.txt",
        run / "none.npz",
    ):
        assert verified(path) == path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-1], "cut off"),
        (lambda text: text[:70] + "x" + text[71:], "not the file that was written|not listed"),
        (lambda text: "g" + text[1:], "line 1 is not"),
        (lambda text: "".join(sorted(text.splitlines(keepends=True), reverse=True)), "out of order"),
        (lambda text: "", "not listed in checksums"),
    ],
)
def test_a_damaged_list_is_named(run, change, message):
    path = run / "checksums"
    path.write_text(change(path.read_text()))
    with pytest.raises(RunError, match=message):
        open_run(run)


def test_a_moved_run_and_links_to_it_stay_whole(run, tmp_path, monkeypatch):
    moved = shutil.move(run, tmp_path / "elsewhere")
    (tmp_path / "link").symlink_to(moved)
    monkeypatch.chdir(Path(moved) / "vocabulary")
    for path in (tmp_path / "link" / "metrics.json", Path("acoustic.txt"), Path("../config.yaml")):
        verified(path)
    Path("acoustic.txt").write_text("b2\na1\n")
    with pytest.raises(RunError):
        verified("acoustic.txt")


@pytest.mark.parametrize("renames", [0, 1, 2])
def test_killed_while_a_file_is_replaced(run, monkeypatch, renames):
    """``checksums``, the file, ``checksums`` are renamed; after each of these steps the run is intact."""
    left, rename = [renames], Path.replace

    def killed(self: Path, target: Path) -> Path:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        write_text(run / "metrics.json", '{"new": 1}\n')
    monkeypatch.undo()
    assert checksums.differences(run) == {}
    write_text(run / "metrics.json", "newer\n")
    assert checksums.differences(run) == {}
    assert len(listed(run)) == 3


def test_processes_that_write_at_once_lose_nothing(run):
    """For example a test that writes its results while the run is trained."""
    children = []
    for child in range(4):
        if not (pid := os.fork()):
            for number in range(20):
                write_text(run / "test" / f"{child}_{number}.json", f"{number}\n")
            os._exit(0)
        children.append(pid)
    assert all(os.waitpid(pid, 0)[1] == 0 for pid in children)
    assert checksums.differences(run) == {}
    assert len(listed(run)) == 3 + 4 * 20


def test_accept_records_intended_changes(run, capsys):
    (run / "metrics.json").write_text("edited\n")
    (run / "labels.txt").write_text("yes\n")
    inspect_model.main(["accept", str(run)])
    printed = capsys.readouterr().out
    assert "metrics.json: not the file that was written" in printed
    assert "labels.txt: not listed in checksums" in printed
    assert checksums.differences(run) == {}
    (run / "checksums").write_text("damaged")
    inspect_model.main(["accept", str(run)])
    assert "cut off" in capsys.readouterr().out
    assert checksums.differences(run) == {}
