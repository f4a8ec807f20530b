"""Tests of data/array_store.py: complete or absent entries; damage, full disks and failures."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from data.array_store import (
    CacheEntry,
    require_space,
    write_errors,
)
from utils.errors import CacheError


@pytest.fixture
def entry(tmp_path: Path) -> CacheEntry:
    return CacheEntry(tmp_path / "a1b2", ("npy", "rejected.tsv"), "clips")


def write(entry: CacheEntry) -> None:
    with entry.writing():
        entry.path("npy").write_bytes(b"samples")
        entry.path("rejected.tsv").write_bytes(b"")


def test_an_entry_is_complete_when_its_block_has_ended(entry):
    with entry.writing():
        entry.path("npy").write_bytes(b"samples")
        entry.path("rejected.tsv").write_bytes(b"")
        assert not entry.is_complete()
    assert entry.is_complete()
    with entry.reading():
        assert entry.path("npy").read_bytes() == b"samples"
    assert {path.name for path in entry.stem.parent.iterdir()} == {
        "a1b2.npy",
        "a1b2.rejected.tsv",
        "a1b2.sha256",
    }


def test_an_error_while_writing_leaves_the_entry_incomplete(entry):
    with pytest.raises(ZeroDivisionError), entry.writing():
        entry.path("npy").write_bytes(b"half")
        raise ZeroDivisionError
    assert not entry.is_complete()


def test_a_missing_file_is_reported_as_an_error_of_writing(entry):
    with pytest.raises(CacheError, match="the clips can't be written"), entry.writing():
        entry.path("npy").write_bytes(b"samples")
    assert not entry.is_complete()


@pytest.mark.parametrize("ending", ["npy", "rejected.tsv", "sha256"])
def test_a_changed_file_is_damage_and_the_file_to_delete_is_named(entry, ending):
    write(entry)
    with entry.path(ending).open("ab") as file:
        file.write(b"x")
    message = r"the cached clips are damaged .*delete .*a1b2\.sha256"
    with pytest.raises(CacheError, match=message), entry.reading():
        pass


def test_the_space_of_a_folder_that_does_not_exist_yet(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2e9))
    require_space(tmp_path / "new", 2e9, "features")
    with pytest.raises(CacheError, match=r"the features need 2\.1 GB, 2\.0 GB are free"):
        require_space(tmp_path / "new", 2.1e9, "features")


def test_errors_of_the_system_name_the_folder(tmp_path):
    message = rf"can't be written \(No space left\), {tmp_path}"
    with pytest.raises(CacheError, match=message), write_errors(tmp_path, "features"):
        raise OSError(28, "No space left")
