"""A run's config and the lists given on the command line → the utterances or sentences of a test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from data.manifest import Transcript, Utterance, read_manifest, read_transcripts
from data.text.pinyin_pairs import pairs_from_text
from utils.errors import CorpusError, RunError
from utils.files import is_file
from utils.run_folder.run import RunFolder

One = TypeVar("One")


def lists_of_split(run: RunFolder, split: str, given: Sequence[Path] | None = None) -> list[Path]:
    """The lists that were given, else those of the split in the run's config.

    Raises:
        RunError: the config names none, or they are gone.
    """
    if given:
        return list(given)
    recorded = run.manifests(split)
    hint = "pass --manifest FILE"
    if not recorded:
        raise RunError(f"the run's config names no {split} set", where=run.config_file, hint=hint)
    gone = [str(path) for path in recorded if not path.is_file()]
    if gone:
        what = f"the {split} set is not there any more: {', '.join(gone)}"
        raise RunError(what, where=run.config_file, hint=hint)
    return recorded


def read_test_utterances(manifests: Sequence[Path], limit: int | None = None) -> list[Utterance]:
    """The first utterances of these manifests, all of them by default; their recordings must be there.

    Raises:
        CorpusError: there are none, or recordings are gone.
    """
    found = [one for path in manifests for one in read_manifest(path)]
    utterances = _limited(found, manifests, limit)
    gone = [one.audio for one in utterances if not is_file(one.audio)]
    if gone:
        what = f"{len(gone)} of {len(utterances)} recordings are not there, e.g. {gone[0]}"
        raise CorpusError(what, where=manifests[0], hint="prepare the corpus again, or pass --manifest FILE")
    return utterances


def read_test_transcripts(lists: Sequence[Path], limit: int | None = None) -> list[Transcript]:
    """The first sentences of manifests, transcript lists or text files (whose pinyin is automatic).

    Raises:
        CorpusError: there are none.
    """
    return _limited([one for path in lists for one in _transcripts(path)], lists, limit)


def _transcripts(path: Path) -> list[Transcript]:
    if path.suffix == ".tsv":
        return [one for one in read_transcripts(path) if one.hanzi]
    pairs = pairs_from_text(path).pairs
    return [Transcript(f"{path.stem}:{number}", *pair) for number, pair in enumerate(pairs, start=1)]


def _limited(found: list[One], lists: Sequence[Path], limit: int | None) -> list[One]:
    if not found:
        raise CorpusError("the list holds no utterance", where=lists[0], hint="give another: --manifest FILE")
    return found[:limit]
