"""Reads the manifests that a model was trained on: counts of their syllables, and their sentences."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from data.manifest import read_transcripts
from utils.errors import ConfigError, StoreError
from utils.object_store import read_part


@dataclass(frozen=True)
class Training:
    """What is known of the models and of their training texts; None: not known.

    Attributes:
        hanzi: all hanzi that the second stage (syllables to hanzi) can write.
        candidates: syllable → the hanzi that the second stage may write for it.
        syllables: count of each syllable in the training texts.
        sentences: hanzi of all training sentences.
    """

    hanzi: Collection[str] | None = None
    candidates: Callable[[str], Collection[str]] | None = None
    syllables: Mapping[str, int] | None = None
    sentences: Collection[str] | None = None


def read_training(
    paths: Iterable[str | Path],
    hanzi: Collection[str] | None = None,
    candidates: Callable[[str], Collection[str]] | None = None,
) -> Training:
    """Read the training texts of a model.

    Args:
        paths: manifests or transcript lists, or their addresses. If one does not exist any more, its store
            can't be read, or it is plain text without pinyin, neither syllables nor sentences are known.
        hanzi, candidates: as in :class:`Training`.

    Raises:
        CorpusError: a list is damaged.
    """
    lists = [Path(path) for path in paths]
    if not lists or any(path.suffix != ".tsv" or not _is_there(path) for path in lists):
        return Training(hanzi=hanzi, candidates=candidates)
    syllables: Counter[str] = Counter()
    sentences = set()
    for path in lists:
        for transcript in read_transcripts(path):
            syllables.update(transcript.pinyin)
            sentences.add(transcript.hanzi)
    return Training(hanzi=hanzi, candidates=candidates, syllables=syllables, sentences=sentences)


def count_seen(training: Training, sentences: Iterable[str]) -> int | None:
    """Number of sentences that are in the training texts; None if these are not known.

    The empty sentence of a recording without speech does not count.
    """
    if training.sentences is None:
        return None
    return sum(sentence in training.sentences for sentence in sentences if sentence)


def _is_there(path: Path) -> bool:
    try:  # a test of a model must not fail because the store of its training texts is out of reach
        read_part(path, size=1)
    except (OSError, ValueError, ConfigError, StoreError):  # ValueError: an impossible name
        return False
    return True
