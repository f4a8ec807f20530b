"""Records checksums of training texts and manifests in config.yaml; detects what has changed since."""

import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from data.manifest import Utterance
from utils.errors import RunError
from utils.run_folder.checksum_files import file_hash
from utils.run_folder.run import ENVIRONMENT, RunFolder

log = logging.getLogger("train")

TEXTS = "training_texts"
"""Key in the environment of config.yaml: path of a training text → its checksum, size and time."""
UTTERANCES = "utterances"
"""Key in the environment of config.yaml: setting → hash of the ids and syllables of its utterances."""


def check_training_texts(run: RunFolder, texts: Sequence[str | Path]) -> None:
    """Record the texts of a new run; refuse to resume a run, or to call it finished, if a text changed.

    Missing texts are not checked.

    Args:
        run: a language run.
        texts: the training texts of the config.

    Raises:
        RunError: a text has changed since the start of the run.
    """
    paths = [Path(path) for path in texts if Path(path).is_file()]
    noted = run.config()[ENVIRONMENT].get(TEXTS)
    if noted is None:
        run.record(TEXTS, {str(path): _noted(path) for path in paths})
        return
    changed = [str(path) for path in paths if str(path) in noted and _changed(path, noted[str(path)])]
    if changed:
        raise RunError(
            f"the run was trained on another content of {', '.join(changed)}",
            where=run.path,
            hint="choose another --run, or delete the folder to start anew",
        )


def warn_of_changed_utterances(run: RunFolder, utterances: Mapping[str, Iterable[Utterance]]) -> None:
    """Record the utterances of a new run; log a warning if those of a resumed run are others.

    Args:
        run: a speech run.
        utterances: setting (``data.train``) → its utterances in their order.
    """
    hashes = {name: _utterances_hash(each) for name, each in utterances.items()}
    if not run.checkpoint.is_file():
        run.record(UTTERANCES, hashes)
        return
    noted = run.config()[ENVIRONMENT][UTTERANCES]
    if changed := [name for name in hashes if hashes[name] != noted.get(name)]:
        log.warning(
            "%s: other utterances or syllables than when this run began: this epoch may repeat and skip "
            "utterances, and its figures may not be comparable with those before",
            " and ".join(changed),
        )


def _utterances_hash(utterances: Iterable[Utterance]) -> str:
    digest = hashlib.sha256()
    for utterance in utterances:
        digest.update(f"{utterance.id}\t{' '.join(utterance.pinyin)}\n".encode())
    return digest.hexdigest()


def _noted(path: Path) -> dict[str, Any]:
    status = path.stat()
    return {"sha256": file_hash(path), "bytes": status.st_size, "modified_ns": status.st_mtime_ns}


def _changed(path: Path, before: Mapping[str, Any]) -> bool:
    status = path.stat()
    # A file of the same size and time is not read again to compare its checksum.
    unread = (status.st_size, status.st_mtime_ns) == (before["bytes"], before["modified_ns"])
    return not unread and file_hash(path) != before["sha256"]
