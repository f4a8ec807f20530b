"""Reads pairs of pinyin and hanzi for language models from manifests, transcript lists and text files.

The pinyin of plain text is automatic (``utils.mandarin.pinyin.hanzi_to_pinyin``, which also applies the tone
changes of 一 and 不; some 300,000 hanzi per second) and may be kept in a cache folder.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tqdm import tqdm

from data.manifest import read_transcripts
from data.text.pinyin_pair_dataset import Pair
from data.text.pinyin_pair_preparation import prepare_pairs
from data.text.sources import read_lines
from utils.errors import CorpusError
from utils.mandarin.pinyin import hanzi_to_pinyin, is_hanzi

log = logging.getLogger(__name__)

MANIFEST_ENDINGS = (".tsv",)
TEXT_ENDINGS = (".txt", ".txt.xz")


@dataclass(frozen=True)
class PairSet:
    """Sentences to train on, and the number of lines that can't be used.

    Attributes:
        pairs: the sentences, in the order of the sources.
        rejected: lines that hold anything but hanzi, or hanzi without a reading.
    """

    pairs: list[Pair]
    rejected: int = 0


def read_pairs(sources: Sequence[str | Path], limit: int = 0, cache: str | Path | None = None) -> PairSet:
    """Read sources of any kind, distinguished by their file endings.

    Args:
        sources: manifests or transcript lists (``.tsv``), text files (``.txt``, ``.txt.xz``).
        limit: largest number of pairs in all; 0: no limit.
        cache: folder that keeps the pinyin of text files.

    Raises:
        CorpusError: a file is missing, damaged or of an unknown kind, or there is not a single pair.
    """
    pairs: list[Pair] = []
    rejected = 0
    for source in map(Path, sources):
        remaining = limit - len(pairs)
        if limit and remaining <= 0:
            break
        if source.name.endswith(MANIFEST_ENDINGS):
            found = pairs_from_manifest(source, max(remaining, 0))
        elif source.name.endswith(TEXT_ENDINGS):
            found = pairs_from_text(source, max(remaining, 0), cache)
        else:
            endings = ", ".join(MANIFEST_ENDINGS + TEXT_ENDINGS)
            raise CorpusError("unknown kind of text file", where=source, hint=f"name it {endings}")
        pairs += found.pairs
        rejected += found.rejected
    if not pairs:
        raise CorpusError(
            "no usable sentence",
            where=", ".join(map(str, sources)) or "no sources",
            hint="only lines that consist of hanzi are used",
        )
    return PairSet(pairs, rejected)


def pairs_from_manifest(path: str | Path, limit: int = 0) -> PairSet:
    """The texts of a manifest or of a transcript list; recordings without speech are skipped.

    Raises:
        CorpusError: see :func:`data.manifest.read_transcripts`.
    """
    pairs = [Pair(line.pinyin, line.hanzi) for line in read_transcripts(path) if line.hanzi]
    return PairSet(pairs[:limit] if limit else pairs)


def pairs_from_text(path: str | Path, limit: int = 0, cache: str | Path | None = None) -> PairSet:
    """Read a UTF-8 text file, plain or compressed, one clause per line; its pinyin is automatic.

    A line with anything but hanzi (digits, Latin letters, punctuation) is left out and counted: it is not
    known how it is read aloud. Empty lines don't count.

    Args:
        path: the file.
        limit: stop after this number of usable lines; 0: no limit.
        cache: folder that keeps the pinyin (``data.text.pinyin_pair_preparation``).

    Raises:
        CorpusError: the file is missing, not UTF-8, or damaged.
    """
    path = Path(path)
    if cache is not None:
        (shard,) = prepare_pairs([path], cache).shards
        return PairSet(list(islice(shard.pairs(), limit or None)), sum(shard.rejected.values()))
    pairs: list[Pair] = []
    rejected = 0
    with tqdm(desc=f"pinyin of {path.name}", unit=" lines", disable=None, leave=False) as bar:
        for line in read_lines(path):
            if pair := _pair(line):
                pairs.append(pair)
            else:
                rejected += 1
            bar.update()
            if limit and len(pairs) == limit:
                break
    if rejected:
        log.info("%s: %d of %d lines left out (not hanzi only)", path, rejected, rejected + len(pairs))
    return PairSet(pairs, rejected)


def _pair(line: str) -> Pair | None:
    if not is_hanzi(line):
        return None
    try:
        return Pair(tuple(hanzi_to_pinyin(line)), line)
    except CorpusError:  # a rare character for which pypinyin has no reading
        return None
