"""Downloads and prepares Primewords Chinese Corpus Set 1: splits by speaker, pinyin by pypinyin.

The corpus (Shanghai Primewords, 2018, https://www.openslr.org/47/, CC BY-NC-ND 4.0: not for commercial use)
is ``primewords_md_2018_set1/{set1_transcript.json,audio_files/0/00/000017e3-….wav}``: 100 hours read by 296
speakers into mobile phones. The JSON file is one list of ``{"id", "file", "user_id", "text", …}``, with
spaces in the texts; about 500 of its 50,902 records repeat the recording of an earlier record. The publisher
gives no splits: :func:`split_of_speaker` makes them from ``user_id``.
"""

from utils.command.entry import run_command

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from data.corpora.tools.command import corpus_command
from data.corpora.tools.download import Archive
from data.corpora.tools.preparation import Candidate, Corpus, Problem, find_corpus_folder, split_of_speaker
from data.corpora.tools.transcripts import MISSING, NO_AUDIO, make_candidate
from data.manifest import SPLITS
from utils.errors import CorpusError, shorten
from utils.files import read_text

ARCHIVE = Archive(
    url="https://www.openslr.org/resources/47/primewords_md_2018_set1.tar.gz",
    size=9_057_625_192,  # as the recipes of Kaldi (multi_cn) and ESPnet check it; none has a checksum
    folder="primewords_md_2018_set1",
    unpacked=1.4,
)

_TRANSCRIPT = "set1_transcript.json"
_FIELDS = ("file", "user_id", "text")


def find_utterances(root: Path, output: Path, workers: int) -> Iterator[Candidate]:
    """Yield all records of the transcript, and the recordings without a record.

    Raises:
        CorpusError: the corpus is not there, or its transcript is not a JSON list.
    """
    corpus = find_corpus_folder(root, CORPUS, ("audio_files", _TRANSCRIPT))
    recordings = {path.name: path for path in (corpus / "audio_files").rglob("[!.]*.wav")}
    records: dict[str, list[tuple[str, str]]] = defaultdict(list)  # file → speakers and texts
    for number, record in enumerate(_read_records(corpus / _TRANSCRIPT), start=1):
        if _is_complete(record):
            records[record["file"]].append((record["user_id"], record["text"]))
        else:
            problem = Problem("record is not complete", f"{', '.join(_FIELDS)} expected in record {number}")
            yield Candidate(f"record {number}", "", corpus / _TRANSCRIPT, problem=problem)
    for name, transcripts in records.items():
        yield from _candidates(name, recordings.pop(name, None), transcripts)
    for name, path in recordings.items():
        yield Candidate(name.removesuffix(".wav"), "", path, problem=Problem(MISSING, str(path)))


def _read_records(path: Path) -> list[Any]:
    try:
        records = json.loads(read_text(path, "the transcripts", CorpusError))
    except json.JSONDecodeError as error:
        records = error
    if not isinstance(records, list):
        problem = f"not a list of records, perhaps cut off ({records})"
        raise CorpusError(shorten(problem), where=path, hint="unpack the archive again")
    return records


def _is_complete(record: Any) -> bool:
    has_fields = isinstance(record, dict) and all(isinstance(record.get(field), str) for field in _FIELDS)
    return has_fields and bool(record["file"].strip() and record["user_id"].strip())


def _candidates(name: str, audio: Path | None, transcripts: list[tuple[str, str]]) -> Iterator[Candidate]:
    """Yield the candidates of one recording; of equal records the first is used."""
    differ = len(set(transcripts)) > 1
    for index, (speaker, transcript) in enumerate(transcripts):
        text: str | Problem = transcript
        if audio is None:
            text = Problem(NO_AUDIO, name)
        elif differ:
            text = Problem("records of one recording differ", f"{speaker}: {transcript}")
        elif index:
            text = Problem("duplicate record", transcript)
        split = split_of_speaker(CORPUS.name, speaker)
        yield make_candidate(name.removesuffix(".wav"), split, audio or Path(name), speaker, text)


CORPUS = Corpus(
    "primewords",
    "Primewords Set 1: 100 hours of read speech, 296 speakers (CC BY-NC-ND: not for commercial use).\n"
    "Split by speaker: about 90 % train, 5 % dev, 5 % test.",
    find_utterances,
    SPLITS,
    (ARCHIVE,),
)

main = corpus_command(CORPUS)


if __name__ == "__main__":
    run_command(main)
