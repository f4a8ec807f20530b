"""Tests of data/array_store.py: complete or absent entries; damage, full disks and failures."""

from pathlib import Path

import pytest

from data.array_store import (
    CacheEntry,
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


@pytest.mark.parametrize("ending", ["npy", "rejected.tsv", "sha256"])
def test_a_changed_file_is_damage_and_the_file_to_delete_is_named(entry, ending):
    write(entry)
    with entry.path(ending).open("ab") as file:
        file.write(b"x")
    message = r"the cached clips are damaged .*delete .*a1b2\.sha256"
    with pytest.raises(CacheError, match=message), entry.reading():
        pass
