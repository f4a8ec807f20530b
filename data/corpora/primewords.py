"""Primewords Chinese Corpus Set 1 as distributed → manifests, split by speaker, pinyin by pypinyin.

The corpus (Shanghai Primewords, 2018, https://www.openslr.org/47/, CC BY-NC-ND 4.0: not for commercial use)
is ``primewords_md_2018_set1/{set1_transcript.json,audio_files/0/00/000017e3-….wav}``: 100 hours read to
telephones by 296 speakers. The JSON file is one list of ``{"id", "file", "user_id", "text", …}``, with spaces
in the texts; some 500 of its 50,902 records name a recording that an earlier one has named. The publisher
gives no splits: they are :func:`data.corpora.tools.splits.split_of_speaker` of ``user_id``.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from data.corpora.tools.command import corpus_command, corpus_parser
from data.corpora.tools.download import Archive
from data.corpora.tools.preparation import Candidate, Corpus, Problem
from data.corpora.tools.splits import SPLITS, split_of_speaker
from data.corpora.tools.transcripts import MISSING, candidate_of
from utils.errors import CorpusError, run_command

NAME = "primewords"
FOLDER = "primewords_md_2018_set1"

ARCHIVE = Archive(
    url="https://www.openslr.org/resources/47/primewords_md_2018_set1.tar.gz",
    md5="",  # the recipes of Kaldi, ESPnet and Lhotse have none
    size=9_057_625_192,  # as the recipes of Kaldi (multi_cn) and ESPnet check it
    folder=FOLDER,
    unpacked=1.4,
)

_TRANSCRIPT = "set1_transcript.json"
_FIELDS = ("file", "user_id", "text")


def find_utterances(root: Path, workers: int) -> Iterator[Candidate]:
    """All records of the transcript, and the recordings that have none.

    Raises:
        CorpusError: the corpus is not there, or its transcript is not a JSON list.
    """
    corpus = _corpus_folder(root)
    recordings = {path.name: path for path in (corpus / "audio_files").rglob("[!.]*.wav")}
    records: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for number, record in enumerate(_read_records(corpus / _TRANSCRIPT), start=1):
        if _is_complete(record):
            records[record["file"]].append((record["user_id"], record["text"]))
        else:
            problem = Problem("record is not complete", f"{', '.join(_FIELDS)} expected in record {number}")
            yield Candidate(f"record {number}", "", corpus / _TRANSCRIPT, problem=problem)
    for name, said in records.items():
        yield from _candidates(name, recordings.pop(name, None), said)
    for name, path in recordings.items():
        yield Candidate(_stem(name), "", path, problem=Problem(MISSING, str(path)))


def _corpus_folder(root: Path) -> Path:
    for folder in (root, root / FOLDER):
        if (folder / "audio_files").is_dir() and (folder / _TRANSCRIPT).is_file():
            return folder
    hint = f"python -m data.corpora.{NAME} download {root}"
    what = f"no Primewords Set 1 here: {FOLDER}/{{audio_files,{_TRANSCRIPT}}} expected"
    raise CorpusError(what, where=root, hint=hint)


def _read_records(path: Path) -> list[Any]:
    try:
        records = json.loads(path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        what, hint = (
            f"this is not UTF-8 text (byte {error.start})",
            "convert it, e.g. iconv -f GB18030 -t UTF-8",
        )
        raise CorpusError(what, where=path, hint=hint) from error
    except json.JSONDecodeError as error:
        what = f"this is not JSON ({error.msg}), perhaps cut off"
        where = f"{path}:{error.lineno}, column {error.colno}"
        raise CorpusError(what, where=where, hint="unpack the archive again") from error
    if not isinstance(records, list):
        raise CorpusError("this is not a list of records", where=path, hint="unpack the archive again")
    return records


def _is_complete(record: object) -> bool:
    if not isinstance(record, dict) or not all(isinstance(record.get(field), str) for field in _FIELDS):
        return False
    return bool(record["file"].strip() and record["user_id"].strip())


def _candidates(name: str, audio: Path | None, said: list[tuple[str, str]]) -> Iterator[Candidate]:
    """The candidates of one recording: of records that repeat each other the first one is used."""
    differ = len(set(said)) > 1
    for index, (speaker, transcript) in enumerate(said):
        text: str | Problem = transcript
        if audio is None:
            text = Problem("no such audio file", name)
        elif differ:
            text = Problem("records of one recording differ", f"{speaker}: {transcript}")
        elif index:
            text = Problem("record comes twice", transcript)
        yield candidate_of(_stem(name), split_of_speaker(NAME, speaker), audio or Path(name), speaker, text)


def _stem(name: str) -> str:
    return name.removesuffix(".wav")


CORPUS = Corpus(NAME, SPLITS, find_utterances)
_ABOUT = (
    "Primewords Set 1: 100 hours of read speech, 296 speakers (CC BY-NC-ND: not for commercial use).\n"
    "Split by speaker: about 90 % train, 5 % dev, 5 % test."
)


def main(argv: list[str] | None = None) -> int:
    """The command ``python -m data.corpora.primewords``."""
    return corpus_command(CORPUS, ARCHIVE, _parser().parse_args(argv))


def _parser() -> argparse.ArgumentParser:
    return corpus_parser(CORPUS, ARCHIVE, _ABOUT)


if __name__ == "__main__":
    run_command(main)
