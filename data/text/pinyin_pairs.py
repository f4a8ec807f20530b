"""Reads pairs of pinyin and hanzi for language models from manifests, transcript lists and text files.

The pinyin of plain text is automatic (``utils.mandarin.pinyin.hanzi_to_pinyin``, which also applies the tone
changes of 一 and 不; some 300,000 hanzi per second) and may be kept in a cache folder.
"""

import logging
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from tqdm import tqdm

from data.manifest import read_transcripts
from data.text.pinyin_pair_dataset import Pair
from data.text.pinyin_pair_preparation import prepare_pairs
from data.text.sources import read_lines
from utils.errors import CorpusError
from utils.mandarin.pinyin import hanzi_to_pinyin, is_hanzi

log = logging.getLogger("train")

MANIFEST_ENDINGS = (".tsv",)
TEXT_ENDINGS = (".txt", ".txt.xz")


def read_pairs(sources: Sequence[str | Path], limit: int = 0, cache: str | Path | None = None) -> list[Pair]:
    """Read sources of any kind, distinguished by their file endings, in their order.

    Of text files, lines with anything but hanzi (digits, Latin letters, punctuation) are left out, and a
    warning counts them: it is not known how they are read aloud. Of manifests, recordings without speech are
    left out.

    Args:
        sources: manifests or transcript lists (``.tsv``); UTF-8 text files, one clause per line (``.txt``,
            ``.txt.xz``).
        limit: largest number of pairs in all; 0: no limit.
        cache: folder that keeps the pinyin of text files (``data.text.pinyin_pair_preparation``).

    Raises:
        CorpusError: a file is missing, damaged or of an unknown kind, or there is not a single pair.
    """
    found = chain.from_iterable(_pairs_of(Path(source), cache) for source in sources)
    pairs = list(islice(found, limit or None))
    if not pairs:
        raise CorpusError(
            "no usable sentence",
            where=", ".join(map(str, sources)) or "no sources",
            hint="only lines that consist of hanzi are used",
        )
    return pairs


def _pairs_of(source: Path, cache: str | Path | None) -> Iterator[Pair]:
    if source.name.endswith(MANIFEST_ENDINGS):
        return (Pair(line.pinyin, line.hanzi) for line in read_transcripts(source) if line.hanzi)
    if not source.name.endswith(TEXT_ENDINGS):
        endings = ", ".join(MANIFEST_ENDINGS + TEXT_ENDINGS)
        raise CorpusError("unknown kind of text file", where=source, hint=f"name it {endings}")
    if cache is None:
        return _pairs_of_text(source)
    (shard,) = prepare_pairs([source], cache).shards
    _warn_of_rejected(source, sum(shard.rejected.values()))
    return shard.pairs()


def _pairs_of_text(path: Path) -> Iterator[Pair]:
    rejected = 0
    for line in tqdm(read_lines(path), f"pinyin of {path.name}", unit=" lines", disable=None, leave=False):
        try:
            # A rare character may have no reading.
            pair = Pair(tuple(hanzi_to_pinyin(line)), line) if is_hanzi(line) else None
        except CorpusError:
            pair = None
        if pair:
            yield pair
        else:
            rejected += 1
    _warn_of_rejected(path, rejected)


def _warn_of_rejected(path: Path, lines: int) -> None:
    if lines:
        log.warning("%d lines of %s left out: they contain other characters than hanzi", lines, path)
