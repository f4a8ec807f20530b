"""ST-CMDS in its one flat folder → manifests, split by speaker, pinyin by pypinyin.

The corpus (Surfingtech, 2017, https://www.openslr.org/38/, CC BY-NC-ND 4.0: not for commercial use) is
``ST-CMDS-20170001_1-OS/20170001P00001A0001.{wav,txt,metadata}``: commands and chat read to telephones, 110
hours, 855 speakers of 120 utterances. A speaker is a number with the letter of a recording series,
``P00001A``. The publisher gives no splits: they are :func:`data.corpora.tools.splits.split_of_speaker`,
by the number alone, because nothing says that ``P00001A`` and ``P00001I`` are two people.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from pathlib import Path

from data.corpora.tools.command import corpus_command, corpus_parser
from data.corpora.tools.download import Archive
from data.corpora.tools.preparation import Candidate, Corpus, Problem
from data.corpora.tools.splits import SPLITS, split_of_speaker
from data.corpora.tools.transcripts import candidate_of, read_transcript_file
from utils.errors import CorpusError, run_command

NAME = "stcmds"
FOLDER = "ST-CMDS-20170001_1-OS"

ARCHIVE = Archive(
    url="https://www.openslr.org/resources/38/ST-CMDS-20170001_1-OS.tar.gz",
    md5="",  # the recipes of Kaldi, ESPnet and Lhotse have none
    size=8_231_662_593,  # as Kaldi's multi_cn recipe checks it
    folder=FOLDER,
    unpacked=1.7,  # 12.7 GB of recordings and 200,000 small files
)

_NAME = re.compile(r"\d{8}(P\d{5})([A-Z])\d{4}")


def find_utterances(root: Path, workers: int) -> Iterator[Candidate]:
    """All recordings and transcripts of the folder.

    Raises:
        CorpusError: the folder is not there.
    """
    folder = _corpus_folder(root)
    stems = sorted(
        {
            entry.name.rpartition(".")[0]
            for entry in os.scandir(folder)
            if entry.name.endswith((".wav", ".txt")) and not entry.name.startswith(".")
        }
    )
    for stem in stems:
        yield _candidate(folder, stem)


def _corpus_folder(root: Path) -> Path:
    for folder in (root / FOLDER, root):
        if folder.is_dir() and next(folder.glob("*P?????[A-Z]????.*"), None):
            return folder
    hint = f"python -m data.corpora.{NAME} download {root}"
    raise CorpusError(f"no ST-CMDS here: {FOLDER}/20170001P00001A0001.wav … expected", where=root, hint=hint)


def _candidate(folder: Path, name: str) -> Candidate:
    audio = folder / f"{name}.wav"
    match = _NAME.fullmatch(name)
    if not match:
        return Candidate(name, "", audio, problem=Problem("not a file name of this corpus", name))
    number, series = match.groups()
    split = split_of_speaker(NAME, number)
    return candidate_of(name, split, audio, number + series, read_transcript_file(folder / f"{name}.txt"))


CORPUS = Corpus(NAME, SPLITS, find_utterances)
_ABOUT = (
    "ST-CMDS: 110 hours of commands and chat, 855 speakers (CC BY-NC-ND: not for commercial use).\n"
    "Split by speaker: about 90 % train, 5 % dev, 5 % test."
)


def main(argv: list[str] | None = None) -> int:
    """The command ``python -m data.corpora.stcmds``."""
    return corpus_command(CORPUS, ARCHIVE, _parser().parse_args(argv))


def _parser() -> argparse.ArgumentParser:
    return corpus_parser(CORPUS, ARCHIVE, _ABOUT)


if __name__ == "__main__":
    run_command(main)
