"""Manifests, transcript lists and plain text files → pairs of pinyin and hanzi to train language models on.

Pinyin of plain text is automatic (``utils.mandarin.pinyin.hanzi_to_pinyin``, some 300,000 hanzi a second; it
tells how 一 and 不 are read); a cache folder keeps it.
"""

from __future__ import annotations

import hashlib
import logging
import lzma
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from data.manifest import read_transcripts
from utils.errors import CorpusError
from utils.files import write_text
from utils.mandarin.pinyin import hanzi_to_pinyin, is_hanzi, reading_version
from utils.run_folder.checksum_files import check, record

log = logging.getLogger(__name__)

MANIFEST_ENDINGS = (".tsv",)
TEXT_ENDINGS = (".txt", ".txt.xz")


class Pair(NamedTuple):
    """A sentence: canonical syllables, and as many hanzi."""

    pinyin: tuple[str, ...]
    hanzi: str


@dataclass(frozen=True)
class PairSet:
    """Sentences to train on, and how many lines could not be used.

    Attributes:
        pairs: in the order of the sources.
        rejected: lines left out because they hold something else than hanzi, or hanzi without a reading.
    """

    pairs: list[Pair]
    rejected: int = 0


def read_pairs(sources: Sequence[str | Path], limit: int = 0, cache: str | Path | None = None) -> PairSet:
    """Read sources of any kind, told apart by their names' endings.

    Args:
        sources: manifests or transcript lists (``.tsv``), text files (``.txt``, ``.txt.xz``).
        limit: only the first so many pairs in all; 0 means all.
        cache: folder that keeps the pinyin of text files.

    Raises:
        CorpusError: a file is missing, damaged or of an unknown kind, or there is not a single pair.
    """
    pairs: list[Pair] = []
    rejected = 0
    for source in map(Path, sources):
        left = limit - len(pairs) if limit else 0
        if limit and left <= 0:
            break
        if source.name.endswith(MANIFEST_ENDINGS):
            found = pairs_from_manifest(source, left)
        elif source.name.endswith(TEXT_ENDINGS):
            found = pairs_from_text(source, left, cache)
        else:
            endings = ", ".join(MANIFEST_ENDINGS + TEXT_ENDINGS)
            raise CorpusError("don't know how to read this text", where=source, hint=f"name it {endings}")
        pairs += found.pairs
        rejected += found.rejected
    if not pairs:
        where = ", ".join(map(str, sources)) or "no sources"
        raise CorpusError(
            "no sentences to train on", where=where, hint="only lines of nothing but hanzi count"
        )
    return PairSet(pairs, rejected)


def pairs_from_manifest(path: str | Path, limit: int = 0) -> PairSet:
    """The texts of a manifest or of a transcript list; recordings without speech are passed over.

    Raises:
        CorpusError: see :func:`data.manifest.read_transcripts`.
    """
    pairs = [Pair(line.pinyin, line.hanzi) for line in read_transcripts(path) if line.hanzi]
    return PairSet(pairs[:limit] if limit else pairs)


def pairs_from_text(path: str | Path, limit: int = 0, cache: str | Path | None = None) -> PairSet:
    """Read a UTF-8 text file, one clause a line, xz-compressed or not; its pinyin is automatic.

    A line with anything but hanzi (digits, Latin letters, punctuation) is left out and counted: how it
    would be read aloud is not known. Empty lines don't count.

    Args:
        path: the file.
        limit: stop after so many usable lines; 0 means all.
        cache: folder for the converted text; it is found again as long as the file is unchanged.

    Raises:
        CorpusError: the file is missing, not UTF-8, or damaged.
    """
    path = Path(path)
    if cache is None:
        return _convert(path, limit)
    kept = Path(cache) / f"{path.name.partition('.')[0]}-{_fingerprint(path, limit)}.tsv"
    sums = kept.with_suffix(".sha256")
    if sums.is_file():
        return _read_cache(kept, sums)
    found = _convert(path, limit)
    body = "".join(f"{' '.join(pair.pinyin)}\t{pair.hanzi}\n" for pair in found.pairs)
    write_text(kept, f"{found.rejected}\n{body}")
    record(sums, [kept])
    return found


def _convert(path: Path, limit: int) -> PairSet:
    pairs: list[Pair] = []
    rejected = 0
    with tqdm(desc=f"pinyin of {path.name}", unit=" lines", disable=None, leave=False) as bar:
        for line in _lines(path):
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
    except CorpusError:  # a rare character that pypinyin has no reading for
        return None


def _lines(path: Path) -> Iterator[str]:
    """Non-empty lines without the white space around them."""
    opener = lzma.open if path.suffix == ".xz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig") as file:
            yield from filter(None, map(str.strip, file))
    except OSError as error:
        raise CorpusError("can't read the text", where=path, hint=error.strerror) from error
    except UnicodeDecodeError as error:
        hint = "convert it, e.g. iconv -f GB18030 -t UTF-8"
        raise CorpusError("this is not UTF-8 text", where=path, hint=hint) from error
    except (lzma.LZMAError, EOFError) as error:
        raise CorpusError(f"the file is damaged ({error})", where=path, hint="copy it again") from error


def _fingerprint(path: Path, limit: int) -> str:
    """Changes with the file, the part of it that is read, and the way it is read."""
    try:
        state = path.stat()
    except OSError as error:
        raise CorpusError("can't read the text", where=path, hint=error.strerror) from error
    key = f"{path.resolve()} {state.st_size} {state.st_mtime_ns} {limit} {reading_version()}"
    return hashlib.sha256(key.encode()).hexdigest()[:16]


def _read_cache(path: Path, sums: Path) -> PairSet:
    try:
        check(sums, [path])
        with path.open(encoding="utf-8") as file:
            rejected = int(next(file))
            rows = (line.rstrip("\n").split("\t") for line in file)
            # Interned: millions of sentences share some 1,300 syllables.
            return PairSet([Pair(tuple(map(sys.intern, p.split(" "))), h) for p, h in rows], rejected)
    except (OSError, ValueError, StopIteration) as error:
        what = f"the kept pinyin of a text is damaged ({error})"
        raise CorpusError(what, where=path, hint=f"delete {sums}: it is read aloud again") from error
