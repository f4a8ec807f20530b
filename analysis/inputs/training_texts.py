"""The lists that a model was trained on in; what they hold of each syllable and sentence out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from data.manifest import Transcript, Utterance, read_transcripts


@dataclass(frozen=True)
class Training:
    """What is known of the models and of what they were trained on; None: not known.

    Attributes:
        hanzi: those that the second stage can write.
        candidates: syllable → the hanzi that it may become.
        syllables: how often each syllable comes in the training texts.
        sentences: the texts themselves, hanzi only.
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
    """What is known of a model's training.

    Args:
        paths: manifests or transcript lists. If one is gone, or is plain text (whose pinyin would have to be
            found out first), neither syllables nor sentences are known.
        hanzi, candidates: as in :class:`Training`.

    Raises:
        CorpusError: a list is damaged.
    """
    lists = [Path(path) for path in paths]
    if not lists or any(path.suffix != ".tsv" or not path.is_file() for path in lists):
        return Training(hanzi=hanzi, candidates=candidates)
    syllables: Counter[str] = Counter()
    sentences = set()
    for path in lists:
        for one in read_transcripts(path):
            syllables.update(one.pinyin)
            sentences.add(one.hanzi)
    return Training(hanzi=hanzi, candidates=candidates, syllables=syllables, sentences=sentences)


def count_seen(training: Training, tested: Iterable[Utterance | Transcript]) -> int | None:
    """Utterances whose sentence was trained on; None if the training lists can't be read any more."""
    if training.sentences is None:
        return None
    return sum(one.hanzi in training.sentences for one in tested)
