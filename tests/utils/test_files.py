"""Tests of atomic writes: a file has its old or its new content, never a part."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.small_disk import small_disk
from utils.files import (
    remove_leftovers,
    replacing,
    replacing_folder,
    reserve,
    write_json,
    write_text,
)


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(ZeroDivisionError), replacing(path) as temporary:
        temporary.write_text("half", encoding="utf-8")
        assert path.read_text("utf-8") == "old"
        raise ZeroDivisionError
    assert path.read_text("utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_nameless_error_gets_the_name_of_the_file(tmp_path):
    with pytest.raises(OSError, match="No space") as caught, replacing(tmp_path / "a.txt"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.filename == str(tmp_path / "a.txt")
    with pytest.raises(FileNotFoundError) as caught, replacing(tmp_path / "a.txt"):
        (tmp_path / "other" / "b.txt").read_bytes()
    assert caught.value.filename == str(tmp_path / "other" / "b.txt")
    with pytest.raises(OSError, match="No space") as caught, replacing_folder(tmp_path / "folder"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.filename == str(tmp_path / "folder")


def test_a_read_only_disk_names_the_file_and_keeps_leftovers(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    with small_disk(tmp_path / "disk", 100) as disk:
        with replacing(disk.path / "a.txt") as temporary:
            temporary.write_text("old", encoding="utf-8")
        leftover = disk.path / temporary.name.replace(str(os.getpid()), str(dead.pid))
        leftover.touch()
        disk.read_only()
        for name in ("a.txt", "new.txt"):
            with pytest.raises(OSError, match="Read-only file system") as caught:
                write_text(disk.path / name, "new")
            assert caught.value.filename == str(disk.path / name)
        with (
            pytest.raises(OSError, match="Read-only file system") as caught,
            replacing_folder(disk.path / "b"),
        ):
            pass
        assert caught.value.filename == str(disk.path / "b")
        remove_leftovers(disk.path)
        assert leftover.exists() and (disk.path / "a.txt").read_text("utf-8") == "old"


def test_the_folder_behind_a_link_is_replaced(tmp_path):
    (tmp_path / "disk" / "folder").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "folder")
    with replacing_folder(tmp_path / "link") as folder:
        assert folder.parent == tmp_path / "disk"
        (folder / "a.txt").write_text("new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "disk" / "folder" / "a.txt").is_file()
    assert {path.name for path in tmp_path.iterdir()} == {"disk", "link"}
    assert [path.name for path in (tmp_path / "disk").iterdir()] == ["folder"]


def test_an_interruption_between_the_two_renamings_keeps_the_old_folder(tmp_path, monkeypatch):
    target, rename = tmp_path / "folder", Path.replace
    target.mkdir()
    (target / "a.txt").write_text("old")

    def interrupted(source: Path, destination: Path) -> Path:
        result = rename(source, destination)
        if source == target:
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt), replacing_folder(target):
        pass
    assert (target / "a.txt").read_text() == "old" and [*tmp_path.iterdir()] == [target]


def test_only_files_of_dead_processes_are_removed(tmp_path, monkeypatch):
    with replacing(tmp_path / "a.txt") as temporary:
        mine = temporary.name
        temporary.write_text("whole", encoding="utf-8")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    gone = mine.replace(str(os.getpid()), str(dead.pid))
    elsewhere = f".{dead.pid}-{'0' * 8}.a.txt"
    kept = {"a.txt", mine, elsewhere, ".hidden", f".{dead.pid}.a.txt", f"sub/{elsewhere}"}
    for name in (*kept, gone, f"sub/{gone}"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("content", encoding="utf-8")
    remove_leftovers(tmp_path)
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == kept
    os.utime(tmp_path / elsewhere, (0, 0))
    remove_leftovers(tmp_path)
    assert not (tmp_path / elsewhere).exists() and (tmp_path / "sub" / elsewhere).exists()
    monkeypatch.setattr("time.time", lambda: (tmp_path / mine).stat().st_mtime + 5 * 3600)
    remove_leftovers(tmp_path)
    assert not (tmp_path / "sub" / elsewhere).exists()
    assert (tmp_path / mine).exists(), "its process runs, though it has written nothing for hours"
    remove_leftovers(tmp_path / "not there")


def test_missing_disk_space_is_noticed_before_writing(tmp_path):
    reserve(tmp_path / "new" / "a", 1 << 16)
    assert list((tmp_path / "new").iterdir()) == []
    with pytest.raises(
        OSError, match=r"\[Errno (27|28)\] .*: '.*/a'"
    ):  # no space, or more than the largest file size
        reserve(tmp_path / "a", 1 << 60)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_json_has_no_numbers_that_are_not_finite(tmp_path, value):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"loss": value})
    assert not list(tmp_path.iterdir())
