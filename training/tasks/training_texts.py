"""The texts of a language run → their checksums in its config.yaml, by which a changed text is noticed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from utils.errors import RunError
from utils.run_folder.checksum_files import file_hash
from utils.run_folder.run import ENVIRONMENT, RunFolder

TEXTS = "training_texts"
"""Where config.yaml's environment says which texts the run was trained on: path → its :class:`_Text`."""


@dataclass(frozen=True)
class _Text:
    """A text as it was: a file of the same size and time is not read again to compare its checksum."""

    sha256: str
    bytes: int
    modified_ns: int


def check_training_texts(run: RunFolder, texts: Sequence[str | Path]) -> None:
    """Note the texts of a run that begins; refuse to go on, or to call it finished, if they changed since.

    A text that is gone is not compared, and neither is a run that was begun without such a note.

    Args:
        run: a language run.
        texts: what the config names to train on.

    Raises:
        RunError: a text has another content than when the run began.
    """
    paths = [Path(path) for path in texts if Path(path).is_file()]
    noted = run.config().get(ENVIRONMENT, {}).get(TEXTS)
    if noted is None:
        if not run.checkpoint.is_file() and not run.metrics.is_file():
            run.record(TEXTS, {str(path): asdict(_noted(path)) for path in paths})
        return
    changed = [str(path) for path in paths if str(path) in noted and _changed(path, noted[str(path)])]
    if changed:
        what = f"the run was trained on another content of {', '.join(changed)}"
        hint = "choose another --run, or delete the folder to start anew"
        raise RunError(what, where=run.path, hint=hint)


def _noted(path: Path) -> _Text:
    status = path.stat()
    return _Text(file_hash(path), status.st_size, status.st_mtime_ns)


def _changed(path: Path, before: str | Mapping[str, Any]) -> bool:
    if isinstance(before, str):  # a run of an earlier version: the checksum alone
        return file_hash(path) != before
    status, text = path.stat(), _Text(**before)
    if (status.st_size, status.st_mtime_ns) == (text.bytes, text.modified_ns):
        return False
    return file_hash(path) != text.sha256
