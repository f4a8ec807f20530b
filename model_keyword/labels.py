"""Reads, writes and compares ``labels.txt``: the labels of a keyword model in the order of its outputs."""

from collections.abc import Sequence
from pathlib import Path

from utils.errors import RunError
from utils.files import write_text
from utils.run_folder.checksums import verified


def write_labels(path: Path, labels: Sequence[str]) -> None:
    """Write ``labels.txt``."""
    write_text(path, "".join(f"{label}\n" for label in labels))


def read_labels(path: Path) -> tuple[str, ...]:
    """Read ``labels.txt``.

    Raises:
        RunError: the file is missing, changed since it was written, empty, or has a label twice.
    """
    hint = "copy the file from the run that the weights come from"
    try:
        labels = tuple(verified(path).read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"the labels can't be read ({error})", where=path, hint=hint) from error
    if not labels or len(set(labels)) < len(labels) or "" in labels:
        problem = "no labels" if not labels else "an empty line, or the same label twice"
        raise RunError(f"the list of labels is damaged ({problem})", where=path, hint=hint)
    return labels


def describe_difference(own: Sequence[str], other: Sequence[str]) -> str:
    """Describe how another list of labels differs: missing labels, additional labels, or the order."""
    missing = [label for label in own if label not in other]
    added = [label for label in other if label not in own]
    parts = [f"without {', '.join(missing)}"] if missing else []
    parts += [f"with {', '.join(added)}"] if added else []
    if not parts:
        index = next(i for i, pair in enumerate(zip(own, other, strict=True)) if pair[0] != pair[1])
        parts = [f"in another order: label {index + 1} is {own[index]}, there {other[index]}"]
    return " and ".join(parts)
