"""Reads lists of the user's own: manifests, and plain lists ``audio pinyin hanzi`` of older projects.

A plain list (``.txt`` or ``.tsv``) has these columns, separated by tabs, and no header. Its paths are
relative to its folder or to the one above. :func:`read_utterances` reads both kinds; ``manifest_lists``
prepares them.
"""

import logging
import os
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from data.corpora.tools.preparation import Candidate, Problem, check_candidates, clean_text
from data.corpora.tools.transcripts import WRONG_FIELDS, make_candidate
from data.manifest import (
    REJECTED,
    SPLITS,
    Utterance,
    audio_path,
    check_header,
    is_manifest,
    read_manifest,
    read_rows,
)
from utils.audio.folders import AUDIO_SUFFIXES
from utils.files import is_file
from utils.mandarin.pinyin import is_syllable, is_tone_written
from utils.object_store import address_of

log = logging.getLogger("train")

_PLAIN_COLUMNS = 3
_LONGEST_LINE = 10_000  # characters


def find_lists(folder: Path) -> list[Path]:
    """Find the lists directly in a folder: manifests and plain lists; others (``*.tsv``) are printed.

    A list is a manifest if it is named after a split, whatever its header (a wrong one is then an error), or
    if it has a manifest's header. The list of rejected utterances is not read.
    """
    tables = sorted(path for path in folder.glob("*.tsv") if path.name != REJECTED)
    manifests = [path for path in tables if path.name.lower().startswith(SPLITS) or is_manifest(path)]
    found = {*manifests, *filter(is_plain_list, (*tables, *folder.glob("*.txt")))}
    if others := ", ".join(str(path) for path in tables if path not in found):
        print(f"note: not read, because they have no manifest's header: {others}", file=sys.stderr)
    return sorted(found)


def is_plain_list(path: str | Path) -> bool:
    """Whether the first line is ``audio pinyin hanzi``, separated by tabs."""
    if address_of(path) or not is_file(path):
        return False
    with Path(path).open(encoding="utf-8-sig", errors="replace") as file:
        fields = file.readline(_LONGEST_LINE).rstrip("\n").split("\t")
    return len(fields) == _PLAIN_COLUMNS and Path(fields[0]).suffix.lower() in AUDIO_SUFFIXES


def read_utterances(path: str | Path) -> list[Utterance]:
    """Read a manifest, or the usable lines of a plain list; the others are counted in the log.

    Raises:
        CorpusError: as :func:`data.manifest.read_manifest`; no line of a plain list can be used.
    """
    if not is_plain_list(path):
        return read_manifest(path)
    path = Path(path).resolve()
    return list(_read_plain_list(path, path.stat().st_mtime_ns))


@cache
def _read_plain_list(path: Path, changed: int) -> tuple[Utterance, ...]:
    """The utterances; kept, because a training checks its lists before it reads them."""
    candidates = sorted(candidates_of(path), key=lambda candidate: candidate.id)
    usable, rejected = check_candidates(candidates, path, os.cpu_count() or 1, sample_rate=0)
    if rejected:
        counts = Counter(item.result.reason for item in rejected).most_common()
        reasons = ", ".join(f"{count} {reason}" for reason, count in counts)
        log.warning("%s: %d of %d lines are left out (%s)", path, len(rejected), len(candidates), reasons)
        log.warning("python -m data.corpora.manifest_lists prepare %s lists them", path.parent)
    return tuple(item.result for item in usable)


def candidates_of(path: Path) -> Iterator[Candidate]:
    """The lines of a manifest or of a plain list, which is their split.

    Raises:
        CorpusError: the file can't be read, or is neither of them.
    """
    if is_plain_list(path):
        yield from _plain_candidates(path)
        return
    rows = read_rows(path)
    columns = check_header(path, rows)
    for line, fields in rows[1:]:
        yield _candidate(path, line, fields, columns)


def _plain_candidates(path: Path) -> Iterator[Candidate]:
    rows = read_rows(path)
    folder = path.parent
    if not (folder / rows[0][1][0]).is_file() and (folder.parent / rows[0][1][0]).is_file():
        folder = folder.parent
    for line, fields in rows:
        if len(fields) == _PLAIN_COLUMNS:
            audio, pinyin, hanzi = fields
            yield _candidate(path, line, [Path(audio).stem, str(folder / audio), "", "", pinyin, hanzi], 6)
        else:
            yield _candidate(path, line, fields, _PLAIN_COLUMNS)


def _candidate(path: Path, line: int, fields: list[str], columns: int) -> Candidate:
    if len(fields) != columns:
        problem = Problem(WRONG_FIELDS, f"{len(fields)} in {path.name}:{line}")
        return Candidate(fields[0], path.stem, path, problem=problem)
    name, audio, _, speaker, pinyin, hanzi = fields[:6]
    recording = (name, path.stem, Path(audio_path(str(path.parent), audio)), speaker)
    syllables = tuple(syllable for syllable in pinyin.split() if clean_text(syllable))
    if not syllables:
        return make_candidate(*recording, hanzi)
    if len(syllables) > 1 and all(is_syllable(each) and not is_tone_written(each) for each in syllables):
        # One unmarked syllable may be neutral (de); a whole text is not.
        problem = Problem("pinyin without tones", "write digits (ni3 hao3), or leave the column empty")
        return Candidate(*recording, clean_text(hanzi), syllables, problem=problem)
    spoken_pinyin = tuple(fields[6].split()) if columns > 6 else ()
    return Candidate(*recording, clean_text(hanzi), syllables, spoken_pinyin)
