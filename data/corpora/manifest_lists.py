"""Recordings with lists that somebody else wrote in manifest form → checked manifests.

Each ``*.tsv`` of the folder with the header ``id audio seconds speaker pinyin hanzi`` is a split; a
``manifest.tsv`` that repeats them is left out, and lists of another kind are skipped and named. Texts may be
raw: punctuation and full-width letters are cleaned, an empty pinyin column is filled by pypinyin, and what
stays unreadable is rejected with the reason.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from data.corpora.tools.command import corpus_command, corpus_parser
from data.corpora.tools.preparation import Candidate, Corpus, Problem, clean_text
from data.corpora.tools.transcripts import candidate_of
from data.manifest import check_header, lists_in, note_skipped, read_rows
from utils.errors import CorpusError, run_command


def find_utterances(root: Path, workers: int) -> Iterator[Candidate]:
    """All lines of the lists in ``root``.

    Raises:
        CorpusError: there is no list, or one that is named after a split has another header.
    """
    lists, others = lists_in(root)
    note_skipped(others)
    lists = [path for path in lists if path.stem != "manifest"] or lists
    if not lists:
        raise CorpusError("no list (*.tsv) in this folder", where=root, hint="give the folder of the lists")
    for path in lists:
        rows = read_rows(path)
        columns = check_header(path, rows)
        for line, fields in rows[1:]:
            yield _candidate(path, line, fields, columns)


def _candidate(path: Path, line: int, fields: list[str], columns: int) -> Candidate:
    if len(fields) != columns:
        problem = Problem("wrong number of fields", f"{len(fields)} in {path.name}:{line}")
        return Candidate(fields[0], path.stem, path, problem=problem)
    name, audio, _, speaker, pinyin, hanzi = fields[:6]
    place = (name, path.stem, path.parent / audio, speaker)
    syllables = tuple(syllable for syllable in pinyin.split() if clean_text(syllable))
    if not syllables:
        return candidate_of(*place, hanzi)
    spoken = tuple(fields[6].split()) if columns > 6 else ()
    return Candidate(*place, clean_text(hanzi), syllables, spoken)


CORPUS = Corpus("manifest_lists", (), find_utterances)
_ABOUT = "recordings with lists in manifest form"


def main(argv: list[str] | None = None) -> int:
    """The command ``python -m data.corpora.manifest_lists``."""
    return corpus_command(CORPUS, None, _parser().parse_args(argv))


def _parser() -> argparse.ArgumentParser:
    return corpus_parser(CORPUS, None, _ABOUT)


if __name__ == "__main__":
    run_command(main)
