"""Archives of run folders that earlier versions wrote, beside this file; unpacked for tests."""

import zipfile
from pathlib import Path


def unpack_runs(archive: str, folder: Path) -> Path:
    """Unpack an archive of this folder; returns the folder that has a run in each subfolder."""
    with zipfile.ZipFile(Path(__file__).parent / archive) as file:
        file.extractall(folder)
    return folder
