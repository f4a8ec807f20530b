"""Unpacks the archives beside this file, which have run folders of earlier versions."""

import zipfile
from pathlib import Path


def unpack_runs(archive: str, folder: Path) -> Path:
    """Unpack an archive of this folder; returns the folder that has a run in each subfolder."""
    with zipfile.ZipFile(Path(__file__).parent / archive) as file:
        file.extractall(folder)
    return folder
