"""Finds and reads the test set of an evaluation: lists on the command line, or those in the run's config.

``test.py`` calls this. A list is a manifest or a plain list (``data/corpora/tools/lists.py``) or, for
language models, a manifest, a transcript list or a text file.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from data.corpora.tools.lists import read_utterances
from data.manifest import Transcript, Utterance, read_transcripts
from data.text.pinyin_pairs import read_pairs
from utils.errors import CorpusError, RunError
from utils.files import is_file
from utils.run_folder.run import RunFolder

Item = TypeVar("Item")


def lists_of_split(run: RunFolder, split: str, given: Sequence[Path] | None = None) -> list[Path]:
    """Return the given lists, or else those of the split in the run's config.

    Raises:
        RunError: the config has none, or they no longer exist.
    """
    if given:
        return list(given)
    recorded = run.manifests(split)
    hint = "pass --manifest FILE"
    if not recorded:
        raise RunError(f"the run's config has no {split} set", where=run.config_file, hint=hint)
    missing = [str(path) for path in recorded if not is_file(path)]
    if missing:
        raise RunError(
            f"the {split} set no longer exists: {', '.join(missing)}", where=run.config_file, hint=hint
        )
    return recorded


def read_test_utterances(manifests: Sequence[Path], limit: int | None = None) -> list[Utterance]:
    """Read the first utterances of these manifests, by default all; their recordings must exist.

    Raises:
        CorpusError: there are none, or recordings are missing.
    """
    found = [utterance for path in manifests for utterance in read_utterances(path)]
    utterances = _take(found, manifests, limit)
    missing = [utterance.audio for utterance in utterances if not is_file(utterance.audio)]
    if missing:
        raise CorpusError(
            f"{len(missing)} of {len(utterances)} recordings do not exist, e.g. {missing[0]}",
            where=manifests[0],
            hint="prepare the corpus again, or pass --manifest FILE",
        )
    return utterances


def read_test_transcripts(lists: Sequence[Path], limit: int | None = None) -> list[Transcript]:
    """Read the first sentences of manifests, transcript lists or text files (whose pinyin is automatic).

    Raises:
        CorpusError: there are none.
    """
    return _take([text for path in lists for text in _read_sentences(path)], lists, limit)


def _read_sentences(path: Path) -> list[Transcript]:
    if path.suffix == ".tsv":
        return [text for text in read_transcripts(path) if text.hanzi]
    pairs = read_pairs([path])
    return [Transcript(f"{path.stem}:{number}", *pair) for number, pair in enumerate(pairs, start=1)]


def _take(items: list[Item], lists: Sequence[Path], limit: int | None) -> list[Item]:
    if not items:
        raise CorpusError("the list has no utterance", where=lists[0], hint="give another: --manifest FILE")
    return items[:limit]
