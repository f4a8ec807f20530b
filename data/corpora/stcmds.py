"""Downloads and prepares ST-CMDS: manifests split by speaker, with pinyin by pypinyin.

The corpus (Surfingtech, 2017, https://www.openslr.org/38/, CC BY-NC-ND 4.0: not for commercial use) is
``ST-CMDS-20170001_1-OS/20170001P00001A0001.{wav,txt,metadata}``: 110 hours of commands and chat recorded with
mobile phones, 855 speakers of 120 utterances each. A speaker is a number with the letter of a recording
series, ``P00001A``. The publisher gives no splits: :func:`split_of_speaker` makes them
from the number alone, because it is not known whether ``P00001A`` and ``P00001I`` are two people.
"""

from utils.command.entry import run_command

import os
import re
from collections.abc import Iterator
from pathlib import Path

from data.corpora.tools.command import corpus_command
from data.corpora.tools.download import Archive
from data.corpora.tools.preparation import Candidate, Corpus, Problem, find_corpus_folder, split_of_speaker
from data.corpora.tools.transcripts import make_candidate, read_transcript_file
from data.manifest import SPLITS

ARCHIVE = Archive(
    url="https://www.openslr.org/resources/38/ST-CMDS-20170001_1-OS.tar.gz",
    size=8_231_662_593,  # as Kaldi's multi_cn recipe checks it; no recipe has a checksum
    folder="ST-CMDS-20170001_1-OS",
    unpacked=1.7,  # 12.7 GB of recordings and 200,000 small files
)

_NAME = re.compile(r"\d{8}(P\d{5})([A-Z])\d{4}")


def find_utterances(root: Path, output: Path, workers: int) -> Iterator[Candidate]:
    """Yield all recordings and transcripts of the folder.

    Raises:
        CorpusError: the folder is not there.
    """
    folder = find_corpus_folder(root, CORPUS, ("*P?????[A-Z]????.*",))
    files = [entry.name for entry in os.scandir(folder) if not entry.name.startswith(".")]
    for name in sorted({file.rpartition(".")[0] for file in files if file.endswith((".wav", ".txt"))}):
        yield _candidate(folder, name)


def _candidate(folder: Path, name: str) -> Candidate:
    audio = folder / f"{name}.wav"
    match = _NAME.fullmatch(name)
    if not match:
        return Candidate(name, "", audio, problem=Problem("not a file name of this corpus", name))
    number, series = match.groups()
    lines = read_transcript_file(folder / f"{name}.txt")
    text = lines if isinstance(lines, Problem) else "".join(lines)
    return make_candidate(name, split_of_speaker(CORPUS.name, number), audio, number + series, text)


CORPUS = Corpus(
    "stcmds",
    "ST-CMDS: 110 hours of commands and chat, 855 speakers (CC BY-NC-ND: not for commercial use).\n"
    "Split by speaker: about 90 % train, 5 % dev, 5 % test.",
    find_utterances,
    SPLITS,
    (ARCHIVE,),
)

main = corpus_command(CORPUS)


if __name__ == "__main__":
    run_command(main)
