"""Records checksums of the training texts in config.yaml; detects texts that have changed since."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from utils.errors import RunError
from utils.run_folder.checksum_files import file_hash
from utils.run_folder.run import ENVIRONMENT, RunFolder

TEXTS = "training_texts"
"""Key in the environment of config.yaml: path of a training text → its checksum, size and time."""


def check_training_texts(run: RunFolder, texts: Sequence[str | Path]) -> None:
    """Record the texts of a new run; refuse to resume a run, or to call it finished, if a text changed.

    Missing texts and runs without records are not checked.

    Args:
        run: a language run.
        texts: the training texts of the config.

    Raises:
        RunError: a text has changed since the start of the run.
    """
    paths = [Path(path) for path in texts if Path(path).is_file()]
    noted = run.config().get(ENVIRONMENT, {}).get(TEXTS)
    if noted is None:
        if not run.checkpoint.is_file() and not run.metrics.is_file():
            run.record(TEXTS, {str(path): _noted(path) for path in paths})
        return
    changed = [str(path) for path in paths if str(path) in noted and _changed(path, noted[str(path)])]
    if changed:
        raise RunError(
            f"the run was trained on another content of {', '.join(changed)}",
            where=run.path,
            hint="choose another --run, or delete the folder to start anew",
        )


def _noted(path: Path) -> dict[str, Any]:
    status = path.stat()
    return {"sha256": file_hash(path), "bytes": status.st_size, "modified_ns": status.st_mtime_ns}


def _changed(path: Path, before: str | Mapping[str, Any]) -> bool:
    if isinstance(before, str):  # a run of an earlier version: the checksum alone
        return file_hash(path) != before
    status = path.stat()
    # A file of the same size and time is not read again to compare its checksum.
    unread = (status.st_size, status.st_mtime_ns) == (before["bytes"], before["modified_ns"])
    return not unread and file_hash(path) != before["sha256"]
