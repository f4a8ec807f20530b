"""The texts of a language run → their checksums in its config.yaml, by which a changed text is noticed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from utils.errors import RunError
from utils.run_folder.checksum_files import file_hash
from utils.run_folder.run import ENVIRONMENT, RunFolder

TEXTS = "training_texts"
"""Where config.yaml's environment says which texts the run was trained on: path → SHA-256."""


def check_training_texts(run: RunFolder, texts: Sequence[str | Path]) -> None:
    """Note the texts of a run that begins; refuse to go on, or to call it finished, if they changed since.

    A text that is gone is not compared, and neither is a run that was begun without such a note.

    Args:
        run: a language run.
        texts: what the config names to train on.

    Raises:
        RunError: a text has another content than when the run began.
    """
    now = {str(path): file_hash(path) for path in texts if Path(path).is_file()}
    noted = run.config().get(ENVIRONMENT, {}).get(TEXTS)
    if noted is None:
        if not run.checkpoint.is_file() and not run.metrics.is_file():
            run.record(TEXTS, now)
        return
    changed = [path for path, checksum in now.items() if noted.get(path, checksum) != checksum]
    if changed:
        what = f"the run was trained on another content of {', '.join(changed)}"
        hint = "choose another --run, or delete the folder to start anew"
        raise RunError(what, where=run.path, hint=hint)
